// Regular expressions as automata: first a non-deterministic one, then its sets of states.
#include "model/grammar/regular_expression_parts.hpp"
#include "model/grammar/text_automaton.hpp"
#include "model/grammar/words_hash.hpp"

#include <algorithm>
#include <unordered_map>

namespace lamella::model {

namespace {

using part = regular_expression::part;
using part_kind = part::kind;

} // namespace

class automaton_builder {
public:
  /// `first`: what is tried first and matches leaves no room for what is tried behind it.
  explicit automaton_builder(bool first = false) : first_{first} {}

  using state = text_automaton::state;

  /// States from the end: each goes on at `next`.
  state compile(const part& x, state next) {
    switch (x.what) {
    case part_kind::characters:
      return add({&x.set, {next}});
    case part_kind::sequence:
      for (size_t i = x.inner.size(); i-- > 0;) next = compile(x.inner[i], next);
      return next;
    case part_kind::choice: {
      std::vector<state> branches;
      for (const auto& y : x.inner) branches.push_back(compile(y, next));
      return add({nullptr, std::move(branches)});
    }
    case part_kind::repeat:
      return repeat(x, next);
    case part_kind::begin:
    case part_kind::end:
      throw regular_expression_error("^ and $ are only read at the ends of an alternative");
    }
    return next;
  }

  state endlessly(const part& body, state next, bool is_lazy = true) {
    const auto again = add({nullptr, {next}});
    const auto once = compile(body, again);
    auto& tried = states_[again].next;
    tried.insert(is_lazy ? tried.end() : tried.begin(), once);
    return again;
  }

  state repeat(const part& x, state next) {
    const auto& body = x.inner[0];
    if (x.max == grammar::unbounded) {
      next = endlessly(body, next, x.is_lazy);
      for (uint32_t i = 0; i < x.min; ++i) next = compile(body, next);
      return next;
    }
    const auto behind = next;
    for (auto i = x.max; i-- > 0;) {
      const auto once = compile(body, next);
      if (i < x.min)
        next = once;
      else
        next = add(x.is_lazy ? nfa_state{nullptr, {behind, once}}
                             : nfa_state{nullptr, {once, behind}});
    }
    return next;
  }

  text_automaton deterministic(state first) {
    find_classes();
    sets_.clear();
    text_automaton made;
    made.classes_ = classes_;
    state_of({first}, made);
    for (size_t s = 0; s < sets_.size(); ++s) add_edges(s, made);
    made.work_ = work_ + made.work_of_edges();
    return made;
  }

  state end() const { return 0; }

  state add_choice(std::vector<state> branches) { return add({nullptr, std::move(branches)}); }

private:
  struct nfa_state {
    const code_points* set = nullptr; ///< none: goes on without a character
    std::vector<state> next;
  };

  state add(nfa_state x) {
    if (states_.size() > text_automaton::states_max * 2)
      throw automaton_error("its repeats are too many to be counted");
    states_.push_back(std::move(x));
    return static_cast<state>(states_.size() - 1);
  }

  void find_classes() {
    classes_ = {0};
    std::vector<const code_points*> sets;
    for (const auto& x : states_)
      if (x.set != nullptr) sets.push_back(x.set);
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    for (const auto* set : sets)
      for (const auto& [low, high] : set->ranges()) {
        classes_.push_back(low);
        if (high < 0x10FFFF) classes_.push_back(high + 1);
      }
    std::sort(classes_.begin(), classes_.end());
    classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
    has_.resize(sets.size());
    for (size_t i = 0; i < sets.size(); ++i)
      for (const auto c : classes_) has_[i].push_back(sets[i]->contains(c));
    set_of_.assign(states_.size(), 0);
    for (size_t s = 0; s < states_.size(); ++s)
      if (states_[s].set != nullptr)
        set_of_[s] = static_cast<size_t>(std::lower_bound(sets.begin(), sets.end(), states_[s].set)
                                         - sets.begin());
    count(sets.size() * classes_.size());
  }

  /// Where each class leads. Most lead where the one before does: where none of the sets of
  /// characters that come next tells them apart.
  void add_edges(size_t s, text_automaton& made) {
    std::vector<size_t> telling;
    for (const auto n : sets_[s])
      if (states_[n].set != nullptr) telling.push_back(set_of_[n]);
    std::sort(telling.begin(), telling.end());
    telling.erase(std::unique(telling.begin(), telling.end()), telling.end());
    count(classes_.size() * telling.size());
    std::vector<state> to, before;
    for (size_t c = 0; c < classes_.size(); ++c) {
      const bool is_told = c == 0 || std::any_of(telling.begin(), telling.end(), [&](size_t i) {
                             return has_[i][c] != has_[i][c - 1];
                           });
      if (!is_told) {
        made.next_.push_back(made.next_.back());
        continue;
      }
      count(sets_[s].size());
      to.clear();
      for (const auto n : sets_[s])
        if (states_[n].set != nullptr && has_[set_of_[n]][c]) to.push_back(states_[n].next[0]);
      made.next_.push_back(c > 0 && to == before ? made.next_.back() : state_of(to, made));
      std::swap(to, before);
    }
  }

  void count(size_t looks) {
    work_ += looks;
    if (work_ > work_max)
      throw automaton_error("its states and characters are too many to be told apart");
  }

  /// The set of states that are reached without a character; those that are tried first come first
  /// where that counts.
  std::vector<state> reached(const std::vector<state>& from) {
    std::vector<state> found, to_visit{from.rbegin(), from.rend()};
    if (++round_ == 1 || seen_.size() != states_.size()) seen_.assign(states_.size(), 0);
    while (!to_visit.empty()) {
      count(looks_of_visit);
      const auto s = to_visit.back();
      to_visit.pop_back();
      if (seen_[s] == round_) continue;
      seen_[s] = round_;
      if (s == end() || states_[s].set != nullptr)
        found.push_back(s);
      else
        to_visit.insert(to_visit.end(), states_[s].next.rbegin(), states_[s].next.rend());
      if (s == end() && first_) break;
    }
    if (!first_) std::sort(found.begin(), found.end());
    return found;
  }

  state state_of(const std::vector<state>& from, text_automaton& made) {
    auto set = reached(from);
    const auto [known, is_new] = known_.try_emplace(set, static_cast<state>(sets_.size()));
    if (is_new) {
      text_automaton::bound(sets_.size() + 1, classes_.size());
      const bool ends = !set.empty() && (first_ ? set.back() : set.front()) == end();
      made.marks_.push_back(ends ? 1 : 0);
      sets_.push_back(std::move(set));
    }
    return known->second;
  }

  static constexpr uint64_t work_max = 32'000'000, looks_of_visit = 4;
  const bool first_;
  std::vector<nfa_state> states_{1}; ///< 0 is the end
  std::vector<char32_t> classes_;
  std::vector<std::vector<bool>> has_; ///< by set of characters and class
  std::vector<size_t> set_of_;         ///< by state, which set of characters
  std::unordered_map<std::vector<state>, state, words_hash> known_;
  std::vector<std::vector<state>> sets_;
  std::vector<uint64_t> seen_;
  uint64_t round_ = 0;
  uint64_t work_ = 0;
};

text_automaton text_automaton::of(const regular_expression& expression,
                                  regular_expression::match what) {
  static const part any{part_kind::characters, code_points::all(), {}, 0, 0};
  automaton_builder builder;
  std::vector<state> branches;
  const auto alternatives = expression.alternatives();
  for (const auto& x : alternatives) {
    const bool free = what == regular_expression::match::somewhere;
    auto next = builder.end();
    if (free && !x.ends) next = builder.endlessly(any, next);
    next = builder.compile(x.inner, next);
    branches.push_back(free && !x.begins ? builder.endlessly(any, next) : next);
  }
  return builder.deterministic(builder.add_choice(std::move(branches)));
}

text_automaton text_automaton::of_first_matches(const regular_expression& expression) {
  automaton_builder builder{true};
  std::vector<state> branches;
  const auto alternatives = expression.alternatives();
  for (const auto& x : alternatives) branches.push_back(builder.compile(x.inner, builder.end()));
  return builder.deterministic(builder.add_choice(std::move(branches)));
}

} // namespace lamella::model
