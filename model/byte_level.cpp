#include "model/byte_level.hpp"

#include "model/bpe.hpp"
#include "model/file_error.hpp"
#include "model/marker_trie.hpp"
#include "model/pre_tokenizer.hpp"
#include "model/printable.hpp"
#include "model/utf8.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

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

/// Texts of control tokens that end an answer whatever the file says about them.
constexpr std::array<std::string_view, 9> known_ends{
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",
    "<|end|>",       "<|eot|>",         "<end_of_turn>", "</s>"};

class byte_level_tokenizer final : public tokenizer {
public:
  byte_level_tokenizer(const tokenizer_source& source, const pre_tokenizer& words)
      : words_(words), bos_(source.bos), eos_(source.eos),
        adds_bos_(source.add_bos.value_or(words.adds_bos) && source.bos),
        merges_(read_tokens(source), source.merges.size()) {
    for (size_t i = 0; i < source.merges.size(); ++i) add_merge(source, i);
    const auto end = [this](token_id id) {
      if (id < entries_.size()) entries_[id].ends = true;
    };
    if (source.eos) end(*source.eos);
    for (const token_id id : source.more_ends) end(id);
    for (const std::string_view text : known_ends)
      if (const auto id = markers_.control(text)) end(*id);
  }

  std::vector<token_id> encode(std::span<const text_segment> segments) const override;

  std::string_view token_bytes(token_id token) const override {
    return token < entries_.size() ? std::string_view(entries_[token].bytes) : std::string_view{};
  }
  bool is_special(token_id token) const override {
    return token < entries_.size() && entries_[token].special;
  }
  bool is_end(token_id token) const override {
    return token < entries_.size() && entries_[token].ends;
  }
  std::optional<token_id> special_token(std::string_view text) const override {
    return markers_.control(text);
  }
  bool has_byte(unsigned char byte) const override {
    return plain_.contains(std::string_view(reinterpret_cast<const char*>(&byte), 1));
  }
  uint32_t vocabulary() const override { return static_cast<uint32_t>(entries_.size()); }
  std::optional<token_id> bos() const override { return bos_; }
  std::optional<token_id> eos() const override { return eos_; }
  bool adds_bos() const override { return adds_bos_; }

private:
  struct entry {
    std::string bytes;
    bool special = false;
    bool ends = false;
  };

  std::array<std::optional<token_id>, 256> read_tokens(const tokenizer_source& source);
  void add_merge(const tokenizer_source& source, size_t index);
  void encode_plain(std::string_view text, bpe::scratch& room, std::vector<token_id>& out) const;

  const pre_tokenizer& words_;
  std::optional<token_id> bos_, eos_;
  bool adds_bos_;
  std::vector<entry> entries_;
  /// Normal tokens by their bytes. Control tokens are not in it: no sequence of merges makes one.
  std::unordered_map<std::string_view, token_id> plain_;
  marker_trie markers_;
  bpe merges_; // after the members that read_tokens() fills
};

std::array<std::optional<token_id>, 256>
byte_level_tokenizer::read_tokens(const tokenizer_source& source) {
  if (source.tokens.empty())
    throw file_error(source.file, {}, "tokenizer.ggml.tokens", "is missing or empty");
  entries_.reserve(source.tokens.size()); // keys of plain_ point into the entries
  plain_.reserve(source.tokens.size());
  for (token_id id = 0; id < source.tokens.size(); ++id) {
    const token_kind kind = id < source.kinds.size() ? source.kinds[id] : token_kind::normal;
    const std::string& text = source.tokens[id];
    const bool control = kind == token_kind::control || kind == token_kind::unknown;
    const bool whole = control || kind == token_kind::user_defined;
    entries_.push_back({whole ? text : raw_bytes(text).value_or(text), control, false});
    if (whole) {
      markers_.add(text, id, control);
    } else if (kind != token_kind::unused && !entries_.back().bytes.empty()) {
      plain_.emplace(entries_.back().bytes, id);
    }
  }
  std::array<std::optional<token_id>, 256> of_byte;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const auto found = plain_.find(std::string_view(&c, 1));
    if (found != plain_.end()) of_byte[byte] = found->second;
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
    const auto found = plain_.find(bytes);
    if (found == plain_.end()) throw refuse("needs a token that is not in the vocabulary");
    return found->second;
  };
  merges_.add_rule(token(*left), token(*right), token(*left + *right));
}

void byte_level_tokenizer::encode_plain(std::string_view text, bpe::scratch& room,
                                        std::vector<token_id>& out) const {
  std::vector<size_t> ends;
  words_.split(text, ends);
  size_t begin = 0;
  for (const size_t end : ends) {
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    if (words_.whole_words) {
      if (const auto found = plain_.find(word); found != plain_.end()) {
        out.push_back(found->second);
        continue;
      }
    }
    merges_.merge(word, room, out);
  }
}

std::vector<token_id> byte_level_tokenizer::encode(std::span<const text_segment> segments) const {
  std::string text;
  std::vector<std::pair<size_t, size_t>> trusted; // spans of trusted bytes, neighbours joined
  for (const text_segment& segment : segments) {
    const size_t begin = text.size();
    text += segment.text;
    if (!segment.trusted || segment.text.empty()) continue;
    if (!trusted.empty() && trusted.back().second == begin)
      trusted.back().second = text.size();
    else
      trusted.emplace_back(begin, text.size());
  }
  std::vector<token_id> out;
  bpe::scratch room;
  size_t plain_begin = 0;
  auto span = trusted.begin();
  for (size_t at = 0; at < text.size();) {
    while (span != trusted.end() && span->second <= at) ++span;
    const size_t trusted_end = span != trusted.end() && span->first <= at ? span->second : 0;
    const auto found = markers_.longest(text, at, trusted_end);
    if (found.bytes == 0) {
      ++at;
      continue;
    }
    encode_plain(std::string_view(text).substr(plain_begin, at - plain_begin), room, out);
    out.push_back(found.token);
    at += found.bytes;
    plain_begin = at;
  }
  encode_plain(std::string_view(text).substr(plain_begin), room, out);
  return out;
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
