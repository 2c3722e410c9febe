#include "model/grammar/code_points.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model {

namespace {

using range = code_points::range;

/// Ranges in order without holes in order.
std::vector<range> rest_of(const std::vector<range>& from, const std::vector<range>& holes) {
  std::vector<range> rest;
  auto hole = holes.begin();
  for (auto [low, high] : from) {
    while (hole != holes.end() && hole->second < low) ++hole;
    for (; hole != holes.end() && hole->first <= high; ++hole) {
      if (low < hole->first) rest.emplace_back(low, hole->first - 1);
      low = hole->second + 1;
      if (low > high) break; // the next range may have of this hole, too
    }
    if (low <= high) rest.emplace_back(low, high);
  }
  return rest;
}

std::vector<range> without_surrogates(const std::vector<range>& from) {
  return rest_of(from, {{0xD800, 0xDFFF}});
}

/// Puts a range behind others that begin before it.
void append(std::vector<range>& to, range r) {
  if (!to.empty() && r.first <= to.back().second + 1)
    to.back().second = std::max(to.back().second, r.second);
  else
    to.push_back(r);
}

/// Spells ranges of UTF-8 as sequences of byte ranges, all of which end at `next`: a tree in which
/// what ends alike is one node.
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
      sequence(r);
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

  void add_text(std::string_view text) { sequence(text, text); }

  grammar::node_id take() {
    if (sequences_.empty()) return grammar_.choice();
    std::sort(sequences_.begin(), sequences_.end(), [](const auto& a, const auto& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    });
    return node_of(0, sequences_.size(), 0);
  }

private:
  using bytes = std::pair<uint8_t, uint8_t>; ///< from the one to the other
  static constexpr size_t bytes_max = 6;     ///< of an escape
  struct byte_ranges {
    std::array<bytes, bytes_max> all;
    size_t size = 0;

    const bytes* begin() const { return all.data(); }
    const bytes* end() const { return all.data() + size; }
  };

  void sequence(range r) {
    std::string low, high;
    append_utf8(low, r.first);
    append_utf8(high, r.second);
    sequence(low, high);
  }
  void sequence(std::string_view low, std::string_view high) {
    auto& made = sequences_.emplace_back();
    for (; made.size < low.size(); ++made.size)
      made.all[made.size] = {static_cast<uint8_t>(low[made.size]),
                             static_cast<uint8_t>(high[made.size])};
  }

  /// Of sorted sequences that begin with the same `depth` ranges. What they go on with is the same
  /// or has no byte in common.
  grammar::node_id node_of(size_t begin, size_t end, size_t depth) {
    if (sequences_[begin].size == depth) return next_;
    std::vector<grammar::way> ways;
    for (size_t i = begin, behind = begin; i < end; i = behind) {
      const auto first = sequences_[i].all[depth];
      while (behind < end && sequences_[behind].all[depth] == first) ++behind;
      const auto made_before = grammar_.nodes().size();
      const auto next = node_of(i, behind, depth + 1);
      if (depth == 0 && first.first == '\\') grammar_.are_escapes(made_before);
      const auto way = std::find_if(ways.begin(), ways.end(),
                                    [next](const grammar::way& w) { return w.next == next; });
      const auto set = bytes_between(first.first, first.second);
      if (way != ways.end())
        way->set |= set;
      else
        ways.push_back({set, next});
    }
    for (const auto made : made_) {
      const auto known = grammar_.ways(grammar_.nodes()[made]);
      if (std::equal(
              known.begin(), known.end(), ways.begin(), ways.end(),
              [](const auto& a, const auto& b) { return a.next == b.next && a.set == b.set; }))
        return made;
    }
    return made_.emplace_back(grammar_.fork(ways));
  }

  grammar& grammar_;
  grammar::node_id next_;
  std::vector<byte_ranges> sequences_;
  std::vector<grammar::node_id> made_; ///< few
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

code_points::code_points(std::initializer_list<range> ranges) : code_points{of(ranges)} {}

code_points code_points::of(std::vector<range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<range> merged;
  for (const auto& r : ranges) append(merged, r);
  code_points made;
  made.ranges_ = without_surrogates(merged);
  return made;
}

void code_points::add(char32_t low, char32_t high) {
  if (ranges_.empty() || low > ranges_.back().second) {
    for (const auto& r : without_surrogates({{low, high}})) append(ranges_, r);
  } else {
    ranges_.emplace_back(low, high);
    *this = of(std::move(ranges_));
  }
}

code_points code_points::without(const code_points& others) const {
  code_points rest;
  rest.ranges_ = rest_of(ranges_, others.ranges_);
  return rest;
}

bool code_points::contains(char32_t c) const {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), c,
                                   [](const range& r, char32_t x) { return r.second < x; });
  return at != ranges_.end() && at->first <= c;
}

grammar::node_id one_of(grammar& g, const code_points& set, spelling how, grammar::node_id next) {
  static const code_points escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  if (!set.empty() && set.ranges().back().second < 0x80) {
    byte_set bytes;
    for (const auto& [low, high] : set.ranges())
      bytes |= bytes_between(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
    if (how == spelling::plain || (bytes & ~plain_bytes()).none()) return g.bytes(bytes, next);
  }
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
