// A GGUF file has the pieces and scores of a SentencePiece model and not the model itself, which is
// what the library of that name takes; and that gives way to texts it was not meant for: here text
// comes back byte for byte, costs O(n log n), and never becomes a control token.
#include "model/tokenizer/sentencepiece.hpp"

#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/vocabulary_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

namespace lamella::model {

namespace {

/// How pieces write a space.
constexpr std::string_view space_mark = "\u2581";

/// Longer words are cut, between characters. Part of the definition of the tokeniser.
constexpr size_t word_bytes_max = 16 * 1024;

/// The text with its marks for spaces as spaces.
std::string with_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const size_t mark = std::min(text.find(space_mark, at), text.size());
    out += text.substr(at, mark - at);
    if (mark != text.size()) out += ' ';
    at = mark + space_mark.size();
  }
  return out;
}

/// "<0x0A>"; nothing if it is written in another way.
std::optional<unsigned char> byte_of(std::string_view token) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
  const int high = digit(token[3]), low = digit(token[4]);
  if (high < 0 || low < 0) return {};
  return static_cast<unsigned char>(high << 4 | low);
}

std::string sentencepiece_bytes(const tokenizer_source& source, token_id id) {
  const std::string& text = source.tokens[id];
  const auto kind = id < source.kinds.size() ? source.kinds[id] : token_kind::normal;
  if (kind == token_kind::control || kind == token_kind::unknown) return text;
  if (kind != token_kind::byte) return with_spaces(text);
  const auto byte = byte_of(text);
  if (!byte)
    throw file_error(source.file, {}, "tokenizer.ggml.tokens[" + std::to_string(id) + "]",
                     "'" + printable(text)
                         + "' is a byte's token, which is written <0x00> to "
                           "<0xFF>");
  return std::string(1, static_cast<char>(*byte));
}

/// A character, or one byte of what is none; they are told apart by numbers beyond Unicode.
struct point {
  uint32_t number;
  uint8_t bytes;
};

point point_at(std::string_view text, size_t at) {
  const utf8_unit unit = decode_utf8(text, at);
  if (unit.kind == utf8_unit::state::valid) return {unit.code_point, unit.bytes};
  return {0x110000u + static_cast<unsigned char>(text[at]), 1};
}

class sentencepiece_tokenizer final : public vocabulary_tokenizer {
public:
  explicit sentencepiece_tokenizer(const tokenizer_source& source)
      : vocabulary_tokenizer(source, true,
                             [&](token_id id) { return sentencepiece_bytes(source, id); }),
        puts_space_(source.add_space_prefix.value_or(true)), once_(source.space_prefix_once),
        scores_(source.scores) {
    check_scores(source);
    for (token_id id = 0; id < source.tokens.size(); ++id)
      if (id < source.kinds.size() && source.kinds[id] == token_kind::byte)
        byte_tokens_[static_cast<unsigned char>(token_bytes(id)[0])] = id;
    for (const auto& [piece, id] : plain_tokens()) {
      longest_ = std::max(longest_, piece.size());
      auto before = point_at(piece, 0);
      for (size_t at = before.bytes; at < piece.size();) {
        const auto next = point_at(piece, at);
        neighbours_.insert(pair_of(before, next));
        at += next.bytes;
        before = next;
      }
    }
  }

  bool has_byte(unsigned char byte) const override {
    // Bytes of longer characters are encoded by tokens of bytes alone.
    return byte_tokens_[byte]
           || (byte < 0x80
               && plain_token(std::string_view(reinterpret_cast<const char*>(&byte), 1)));
  }

  uint64_t kept_bytes(std::string_view text) const override {
    uint64_t bytes = vocabulary_tokenizer::kept_bytes(text);
    for (size_t at = 0; (at = text.find(space_mark, at)) != text.npos; at += space_mark.size())
      bytes -= std::min<uint64_t>(bytes, space_mark.size()); // they become spaces, if anything
    return bytes;
  }

  bool puts_space_after(std::optional<token_id> before) const override {
    return puts_space_ && (!before || (!once_ && is_marker(*before)));
  }

private:
  /// A piece of a word: at first a character. `bytes` is 0 once it is part of the one before it.
  struct symbol {
    uint32_t begin, bytes;
    uint32_t previous, next;
    std::optional<token_id> token;
  };
  /// Two symbols that would be a token together.
  struct candidate {
    float score;
    uint32_t left, bytes; ///< the first one; of both
    token_id merged;
    /// The one that is taken later: of a lower score, or further on.
    friend bool operator<(const candidate& a, const candidate& b) {
      return a.score != b.score ? a.score < b.score : a.left > b.left;
    }
  };
  struct scratch {
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };
  static constexpr uint32_t none = ~uint32_t{0};

  static uint64_t pair_of(const point& a, const point& b) {
    return uint64_t{a.number} << 32 | b.number;
  }

  void check_scores(const tokenizer_source& source) const {
    const auto refuse = [&](const std::string& why) {
      return file_error(source.file, {}, "tokenizer.ggml.scores", why);
    };
    if (scores_.size() != source.tokens.size()) throw refuse("is missing");
    for (size_t i = 0; i < scores_.size(); ++i)
      if (!std::isfinite(scores_[i]))
        throw refuse("element " + std::to_string(i) + " is not a finite number");
  }

  void encode_plain(std::string_view text, std::vector<token_id>& out) const override;
  void merge_word(std::string_view word, scratch& room, std::vector<token_id>& out) const;
  void consider(std::string_view word, scratch& room, uint32_t left) const;
  void put(std::string_view word, const symbol& x, std::vector<token_id>& out) const;

  bool puts_space_, once_;
  std::vector<float> scores_;
  std::array<std::optional<token_id>, 256> byte_tokens_{};
  size_t longest_ = 0;                      ///< bytes of a piece
  std::unordered_set<uint64_t> neighbours_; ///< characters beside each other in some piece
};

/// Cuts the text where no piece can lie across, which changes nothing of what is merged: words are
/// short then, and what is kept for one is little.
void sentencepiece_tokenizer::encode_plain(std::string_view plain,
                                           std::vector<token_id>& out) const {
  const bool begins = out.empty() || !once_;
  const std::string text = (puts_space_ && begins ? " " : "") + with_spaces(plain);
  scratch room;
  size_t begin = 0;
  auto before = point_at(text, 0);
  for (size_t at = before.bytes; at < text.size();) {
    const auto next = point_at(text, at);
    const bool parted = !neighbours_.contains(pair_of(before, next));
    if (parted || at + next.bytes - begin > word_bytes_max) {
      merge_word(std::string_view(text).substr(begin, at - begin), room, out);
      begin = at;
    }
    at += next.bytes;
    before = next;
  }
  merge_word(std::string_view(text).substr(begin), room, out);
}

/// Queues the symbol at `left` and the one after it, if they are a token together.
void sentencepiece_tokenizer::consider(std::string_view word, scratch& room, uint32_t left) const {
  const auto& x = room.symbols[left];
  if (x.next == none) return;
  const auto bytes = x.bytes + room.symbols[x.next].bytes;
  if (bytes > longest_) return;
  const auto merged = plain_token(word.substr(x.begin, bytes));
  if (!merged) return;
  room.heap.push_back({scores_[*merged], left, bytes, *merged});
  std::push_heap(room.heap.begin(), room.heap.end());
}

void sentencepiece_tokenizer::merge_word(std::string_view word, scratch& room,
                                         std::vector<token_id>& out) const {
  auto& symbols = room.symbols;
  symbols.clear();
  room.heap.clear();
  for (uint32_t at = 0; at < word.size();) {
    const uint32_t bytes = point_at(word, at).bytes;
    const auto index = static_cast<uint32_t>(symbols.size());
    symbols.push_back(
        {at, bytes, index == 0 ? none : index - 1, index + 1, plain_token(word.substr(at, bytes))});
    at += bytes;
  }
  symbols.back().next = none;
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) consider(word, room, i);
  while (!room.heap.empty()) {
    std::pop_heap(room.heap.begin(), room.heap.end());
    const auto best = room.heap.back();
    room.heap.pop_back();
    auto& left = symbols[best.left];
    // A merge nearby may have taken either symbol since this was queued.
    if (left.bytes == 0 || left.next == none || left.bytes + symbols[left.next].bytes != best.bytes)
      continue;
    auto& right = symbols[left.next];
    left.bytes = best.bytes;
    left.token = best.merged;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != none) symbols[left.next].previous = best.left;
    if (left.previous != none) consider(word, room, left.previous);
    consider(word, room, best.left);
  }
  for (uint32_t i = 0; i != none; i = symbols[i].next) put(word, symbols[i], out);
}

void sentencepiece_tokenizer::put(std::string_view word, const symbol& x,
                                  std::vector<token_id>& out) const {
  if (x.token) {
    out.push_back(*x.token);
    return;
  }
  for (const char c : word.substr(x.begin, x.bytes))
    if (const auto byte = byte_tokens_[static_cast<unsigned char>(c)]) out.push_back(*byte);
}

} // namespace

std::unique_ptr<tokenizer> make_sentencepiece(const tokenizer_source& source) {
  return std::make_unique<sentencepiece_tokenizer>(source);
}

} // namespace lamella::model
