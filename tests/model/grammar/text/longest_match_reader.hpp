/// Reads texts under a lexer, a character at a time: what grammars as text are compared with. Made
/// without anything of the engine: what may still come is lists of parts, and all lists are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lamella::tests {

/// A part of a terminal, where leaves are characters, or of a rule, where they are terminals.
struct lexed_part {
  enum class kind { leaf, sequence, choice, repeat } what = kind::leaf;
  std::u32string characters{};                   ///< leaf of a terminal: one of them
  size_t terminal = 0;                           ///< leaf of a rule
  std::vector<lexed_part> inner{};               ///< repeat: one
  bool may_miss = false, may_come_again = false; ///< repeat
};

struct lexed_terminal {
  std::string name, source; ///< as it is written, with its marks
  lexed_part body{};
  bool is_expression = false, is_ignored = false;
  size_t longest = 0; ///< characters; any number where it is very large
};

inline std::u32string characters_of(std::string_view text) {
  std::u32string all;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte & 0xC0) == 0x80)
      all.back() = all.back() << 6 | (byte & 0x3F);
    else
      all += byte < 0x80 ? byte : byte < 0xE0 ? byte & 0x1F : byte < 0xF0 ? byte & 0x0F : byte & 7;
  }
  return all;
}

class longest_match_reader {
public:
  longest_match_reader(const std::vector<lexed_terminal>& terminals, const lexed_part& start)
      : terminals_{terminals}, start_{opened({{&start}})} {}

  bool takes(std::string_view text) const {
    auto to_come = start_;
    auto running = begun(to_come);
    bool has_begun = false;
    for (const auto c : characters_of(text)) {
      auto next = stepped(running, c);
      if (next.empty()) {
        if (!has_begun || !end(running, to_come)) return false;
        next = stepped(begun(to_come), c);
        if (next.empty()) return false;
      }
      running = std::move(next);
      has_begun = true;
    }
    if (has_begun && !end(running, to_come)) return false;
    return to_come.contains({});
  }

  /// Has it the empty text?
  static bool is_nullable(const lexed_part& x) { return opened({{&x}}).contains({}); }

private:
  using list = std::vector<const lexed_part*>; ///< the next one is the last
  using lists = std::set<list>;
  using running_terminals = std::map<size_t, lists>;

  /// All ways to come to a leaf, or to the end.
  static lists opened(const lists& from) {
    lists found, seen = from;
    std::vector<list> to_visit{from.begin(), from.end()};
    const auto visit = [&](list x) {
      if (seen.insert(x).second) to_visit.push_back(std::move(x));
    };
    while (!to_visit.empty()) {
      auto x = std::move(to_visit.back());
      to_visit.pop_back();
      if (x.empty() || x.back()->what == lexed_part::kind::leaf) {
        found.insert(std::move(x));
        continue;
      }
      const auto& part = *x.back();
      x.pop_back();
      if (part.what == lexed_part::kind::sequence) {
        for (size_t i = part.inner.size(); i-- > 0;) x.push_back(&part.inner[i]);
        visit(std::move(x));
        continue;
      }
      for (const auto& inner : part.inner) {
        auto y = x;
        y.push_back(&inner);
        if (!part.may_come_again) {
          visit(std::move(y));
          continue;
        }
        visit(y);
        y.insert(y.end() - 1, &part);
        visit(std::move(y));
      }
      if (part.may_miss) visit(std::move(x));
    }
    return found;
  }

  running_terminals begun(const lists& to_come) const {
    running_terminals all;
    for (size_t i = 0; i < terminals_.size(); ++i)
      if (terminals_[i].is_ignored) all[i] = opened({{&terminals_[i].body}});
    for (const auto& x : to_come)
      if (!x.empty()) all[x.back()->terminal] = opened({{&terminals_[x.back()->terminal].body}});
    return all;
  }

  static running_terminals stepped(const running_terminals& from, char32_t c) {
    running_terminals to;
    for (const auto& [terminal, all] : from) {
      lists next;
      for (auto x : all) {
        if (x.empty() || x.back()->characters.find(c) == std::u32string::npos) continue;
        x.pop_back();
        next.insert(std::move(x));
      }
      if (!next.empty()) to[terminal] = opened(next);
    }
    return to;
  }

  /// Which one is meant of those that end here: the least.
  auto order_of(const lexed_terminal& x) const {
    return std::tuple{x.is_expression, ~x.longest, ~characters_of(x.source).size(), x.name};
  }

  /// False: none ends here.
  bool end(const running_terminals& running, lists& to_come) const {
    const lexed_terminal* meant = nullptr;
    for (const auto& [terminal, all] : running)
      if (all.contains({})
          && (meant == nullptr || order_of(terminals_[terminal]) < order_of(*meant)))
        meant = &terminals_[terminal];
    if (meant == nullptr || meant->is_ignored) return meant != nullptr;
    lists behind;
    for (auto x : to_come) {
      if (x.empty() || &terminals_[x.back()->terminal] != meant) continue;
      x.pop_back();
      behind.insert(std::move(x));
    }
    to_come = opened(behind);
    return true;
  }

  const std::vector<lexed_terminal>& terminals_;
  const lists start_;
};

} // namespace lamella::tests
