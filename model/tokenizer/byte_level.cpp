#include "model/tokenizer/byte_level.hpp"

#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/vocabulary_tokenizer.hpp"

#include <array>

namespace lamella::model {

namespace {

/// Bytes that are printable in Latin-1 stand for themselves; the others are numbered from U+0100
/// on.
constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// The byte that each character up to U+0143 stands for; -1 for none.
constexpr std::array<int, 0x144> byte_of_character = [] {
  std::array<int, 0x144> table{};
  table.fill(-1);
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    table[stands_for_itself(byte) ? byte : next++] = static_cast<int>(byte);
  return table;
}();

/// The bytes that a token of the file stands for; nothing if it has characters that stand for none.
std::optional<std::string> raw_bytes(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const utf8_unit unit = decode_utf8(token, at);
    if (unit.kind != utf8_unit::state::valid || unit.code_point >= byte_of_character.size()
        || byte_of_character[unit.code_point] < 0)
      return {};
    bytes += static_cast<char>(byte_of_character[unit.code_point]);
    at += unit.bytes;
  }
  return bytes;
}

/// What a token of the file stands for: markers are kept as text.
std::string byte_level_bytes(const tokenizer_source& source, token_id id) {
  const token_kind kind = id < source.kinds.size() ? source.kinds[id] : token_kind::normal;
  const std::string& text = source.tokens[id];
  const bool marker = kind == token_kind::control || kind == token_kind::unknown
                      || kind == token_kind::user_defined;
  return marker ? text : raw_bytes(text).value_or(text);
}

class byte_level_tokenizer final : public vocabulary_tokenizer {
public:
  byte_level_tokenizer(const tokenizer_source& source, const pre_tokenizer& words)
      : vocabulary_tokenizer(source, words.adds_bos,
                             [&](token_id id) { return byte_level_bytes(source, id); }),
        words_(words), whole_words_(source.whole_words.value_or(words.whole_words)),
        merges_(byte_tokens(), source.merges.size()) {
    for (size_t i = 0; i < source.merges.size(); ++i) add_merge(source, i);
  }

  bool has_byte(unsigned char byte) const override {
    return plain_token(std::string_view(reinterpret_cast<const char*>(&byte), 1)).has_value();
  }

private:
  void encode_plain(std::string_view text, std::vector<token_id>& out) const override;
  std::array<std::optional<token_id>, 256> byte_tokens() const;
  void add_merge(const tokenizer_source& source, size_t index);

  const pre_tokenizer& words_;
  bool whole_words_;
  bpe merges_;
};

std::array<std::optional<token_id>, 256> byte_level_tokenizer::byte_tokens() const {
  std::array<std::optional<token_id>, 256> of_byte;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    of_byte[byte] = plain_token(std::string_view(&c, 1));
  }
  return of_byte;
}

void byte_level_tokenizer::add_merge(const tokenizer_source& source, size_t index) {
  const std::string_view rule = source.merges[index];
  const auto refuse = [&](const std::string& why) {
    return file_error(source.file, {}, "tokenizer.ggml.merges[" + std::to_string(index) + "]",
                      "'" + printable(rule) + "' " + why);
  };
  const size_t space = rule.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == rule.size())
    throw refuse("is not two tokens with a space between them");
  const auto left = raw_bytes(rule.substr(0, space)), right = raw_bytes(rule.substr(space + 1));
  if (!left || !right) throw refuse("has characters that stand for no byte");
  const auto token = [&](const std::string& bytes) {
    const auto found = plain_token(bytes);
    if (!found) throw refuse("needs a token that is not in the vocabulary");
    return *found;
  };
  merges_.add_rule(token(*left), token(*right), token(*left + *right));
}

void byte_level_tokenizer::encode_plain(std::string_view text, std::vector<token_id>& out) const {
  std::vector<size_t> ends;
  words_.split(text, ends);
  bpe::scratch room;
  size_t begin = 0;
  for (const size_t end : ends) {
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    if (whole_words_) {
      if (const auto found = plain_token(word)) {
        out.push_back(*found);
        continue;
      }
    }
    merges_.merge(word, room, out);
  }
}

} // namespace

std::unique_ptr<tokenizer> make_byte_level(const tokenizer_source& source) {
  const pre_tokenizer* words = find_pre_tokenizer(source.pre);
  if (!words)
    throw file_error(source.file, {}, "tokenizer.ggml.pre",
                     "'" + printable(source.pre) + "' is not known; known are "
                         + pre_tokenizer_names());
  return std::make_unique<byte_level_tokenizer>(source, *words);
}

} // namespace lamella::model
