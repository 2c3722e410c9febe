#include "model/tokenizer/bpe.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace lamella::model {

namespace {

constexpr uint32_t none = ~uint32_t{0};

constexpr uint64_t pair_of(token_id left, token_id right) { return uint64_t{left} << 32 | right; }

/// A border between code points at or a little before `at`; `at` itself in text that has none.
size_t code_point_border(std::string_view text, size_t at) {
  for (size_t back = 0; back < 4 && back < at; ++back)
    if ((static_cast<unsigned char>(text[at - back]) & 0xC0) != 0x80) return at - back;
  return at;
}

} // namespace

bpe::bpe(const std::array<std::optional<token_id>, 256>& byte_tokens, size_t rules)
    : byte_tokens_(byte_tokens), rules_(std::bit_ceil(2 * rules + 2)) {}

size_t bpe::place_of(uint64_t pair) const {
  const size_t mask = rules_.size() - 1;
  uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 32;
  size_t place = hash & mask;
  while (rules_[place].pair != empty && rules_[place].pair != pair) place = (place + 1) & mask;
  return place;
}

void bpe::add_rule(token_id left, token_id right, token_id merged) {
  if (2 * (size_t{count_} + 1) > rules_.size())
    throw std::length_error("more merge rules than announced");
  rule& slot = rules_[place_of(pair_of(left, right))];
  if (slot.pair == empty) slot = {pair_of(left, right), count_, merged};
  ++count_;
}

size_t bpe::merge(std::string_view word, scratch& room, std::vector<token_id>& out) const {
  size_t work = 0;
  while (word.size() > word_bytes_max) {
    const size_t cut = code_point_border(word, word_bytes_max);
    work += merge_part(word.substr(0, cut), room, out);
    word.remove_prefix(cut);
  }
  return work + merge_part(word, room, out);
}

/// Queues the rule for the symbol at `left` and the one after it, if there is one.
void bpe::consider(scratch& room, uint32_t left) const {
  const auto& symbol = room.symbols_[left];
  if (symbol.next == none) return;
  const token_id right = room.symbols_[symbol.next].token;
  const rule& found = rules_[place_of(pair_of(symbol.token, right))];
  if (found.pair == empty) return;
  room.heap_.push_back({found.rank, left, symbol.token, right, found.merged});
  std::push_heap(room.heap_.begin(), room.heap_.end(), [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  });
}

size_t bpe::merge_part(std::string_view part, scratch& room, std::vector<token_id>& out) const {
  auto& symbols = room.symbols_;
  symbols.clear();
  room.heap_.clear();
  for (const char c : part) {
    const auto token = byte_tokens_[static_cast<unsigned char>(c)];
    if (!token) continue;
    const auto index = static_cast<uint32_t>(symbols.size());
    symbols.push_back({*token, index == 0 ? none : index - 1, index + 1});
  }
  if (symbols.empty()) return 0;
  symbols.back().next = none;

  size_t work = symbols.size();
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) consider(room, i);
  while (!room.heap_.empty()) {
    std::pop_heap(room.heap_.begin(), room.heap_.end(), [](const auto& a, const auto& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    });
    const auto best = room.heap_.back();
    room.heap_.pop_back();
    auto& left = symbols[best.at];
    // A merge nearby may have taken either token since this rule was queued. A symbol that was
    // taken has the token `none`.
    if (left.token != best.left || left.next == none) continue;
    auto& right = symbols[left.next];
    if (right.token != best.right) continue;
    left.token = best.merged;
    right.token = none;
    left.next = right.next;
    if (left.next != none) symbols[left.next].previous = best.at;
    if (left.previous != none) consider(room, left.previous);
    consider(room, best.at);
    work += 2;
  }
  for (uint32_t i = 0; i != none; i = symbols[i].next) out.push_back(symbols[i].token);
  return work;
}

} // namespace lamella::model
