#include "model/grammar/code_points.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace lamella::model {

namespace {

using range = code_points::range;

constexpr range surrogates{0xD800, 0xDFFF};

/// `from` without `hole`.
void append_rest(std::vector<range>& out, range from, range hole) {
  if (hole.second < from.first || from.second < hole.first) {
    out.push_back(from);
    return;
  }
  if (from.first < hole.first) out.push_back({from.first, hole.first - 1});
  if (hole.second < from.second) out.push_back({hole.second + 1, from.second});
}

/// Spells ranges of UTF-8 as sequences of byte ranges. All sequences end at `next`; those of one
/// byte are one node.
class utf8_speller {
public:
  utf8_speller(grammar& g, grammar::node_id next) : grammar_{g}, next_{next} {}

  void add(range r) {
    // Within a range all characters have equally many bytes.
    for (const char32_t last : {0x7F, 0x7FF, 0xFFFF})
      if (r.first <= last && last < r.second) {
        add({r.first, last});
        add({last + 1, r.second});
        return;
      }
    if (r.second < 0x80) {
      single_ |= bytes_between(static_cast<uint8_t>(r.first), static_cast<uint8_t>(r.second));
      return;
    }
    // The bytes behind a byte that differs between first and last must run through all values.
    for (unsigned bits = 6; bits <= 18; bits += 6) {
      const char32_t below = (1u << bits) - 1;
      if ((r.first & ~below) == (r.second & ~below)) break;
      if ((r.first & below) != 0) {
        add({r.first, r.first | below});
        add({(r.first | below) + 1, r.second});
        return;
      }
      if ((r.second & below) != below) {
        add({r.first, (r.second & ~below) - 1});
        add({r.second & ~below, r.second});
        return;
      }
    }
    sequence(r);
  }

  void add_text(std::string_view text) { branches_.push_back(grammar_.text(text, next_)); }

  grammar::node_id take() {
    if (single_.any()) branches_.push_back(grammar_.bytes(single_, next_));
    return branches_.size() == 1 ? branches_[0] : grammar_.choice(std::move(branches_));
  }

private:
  void sequence(range r) {
    std::string low, high;
    append_utf8(low, r.first);
    append_utf8(high, r.second);
    auto at = next_;
    for (size_t i = low.size(); i-- > 0;)
      at = grammar_.bytes(
          bytes_between(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])), at);
    branches_.push_back(at);
  }

  grammar& grammar_;
  grammar::node_id next_;
  byte_set single_;
  std::vector<grammar::node_id> branches_;
};

std::string json_escape(char32_t c) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
  case '"':
    return "\\\"";
  case '\\':
    return "\\\\";
  case '\b':
    return "\\b";
  case '\f':
    return "\\f";
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  default:
    return std::string{"\\u00"} + hex[c >> 4] + hex[c & 15];
  }
}

} // namespace

code_points::code_points(std::initializer_list<range> ranges) {
  for (const auto& [low, high] : ranges) add(low, high);
}

void code_points::add(char32_t low, char32_t high) {
  append_rest(ranges_, {low, high}, surrogates);
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<range> merged;
  for (const auto& r : ranges_) {
    if (!merged.empty() && r.first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, r.second);
    else
      merged.push_back(r);
  }
  ranges_ = std::move(merged);
}

void code_points::add(const code_points& others) {
  for (const auto& [low, high] : others.ranges_) add(low, high);
}

code_points code_points::without(const code_points& others) const {
  code_points rest = *this;
  for (const auto& hole : others.ranges_) {
    std::vector<range> left;
    for (const auto& r : rest.ranges_) append_rest(left, r, hole);
    rest.ranges_ = std::move(left);
  }
  return rest;
}

bool code_points::contains(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [c](const range& r) { return r.first <= c && c <= r.second; });
}

grammar::node_id one_of(grammar& g, const code_points& set, spelling how, grammar::node_id next) {
  static const code_points escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  utf8_speller speller{g, next};
  if (how == spelling::plain) {
    for (const auto& r : set.ranges()) speller.add(r);
    return speller.take();
  }
  const auto unescaped = set.without(escaped);
  for (const auto& r : unescaped.ranges()) speller.add(r);
  for (const auto& [low, high] : escaped.ranges())
    for (auto c = low; c <= high; ++c)
      if (set.contains(c)) speller.add_text(json_escape(c));
  return speller.take();
}

} // namespace lamella::model
