#include "model/grammar/regular_expression.hpp"

#include "model/grammar/regular_expression_parts.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

using part = regular_expression::part;
using part_kind = part::kind;

/// Copies of a body are nodes, repeats are work while a text is made: few copies are cheaper.
constexpr uint32_t copies_max = 4;
/// Copies within copies: also of what makes no nodes.
constexpr uint32_t steps_max = 1'000'000;

class compiler {
public:
  compiler(grammar& g, spelling how) : grammar_{g}, how_{how} {}

  grammar::node_id compile(const part& x, grammar::node_id next) {
    if (++steps_ > steps_max)
      throw regular_expression_error("it is too large: its repeats within repeats have more than "
                                     + std::to_string(steps_max) + " parts");
    switch (x.what) {
    case part_kind::characters:
      return one_of(grammar_, x.set, how_, next);
    case part_kind::sequence:
      for (size_t i = x.inner.size(); i-- > 0;) next = compile(x.inner[i], next);
      return next;
    case part_kind::choice: {
      std::vector<grammar::node_id> branches;
      for (const auto& y : x.inner) branches.push_back(compile(y, next));
      return branches.size() == 1 ? branches[0] : grammar_.choice(std::move(branches));
    }
    case part_kind::repeat:
      return repeat(x, next);
    case part_kind::begin:
    case part_kind::end:
      throw regular_expression_error("^ and $ are only read at the ends of an alternative");
    }
    return next;
  }

  /// Any text, then `next`.
  grammar::node_id anything(grammar::node_id next) { return endlessly(any_character(), 0, next); }

private:
  static const part& any_character() {
    static const part any{part_kind::characters, code_points::all(), {}, 0, 0};
    return any;
  }

  /// `least`: 0 or 1 times at least.
  grammar::node_id endlessly(const part& body, uint32_t least, grammar::node_id next) {
    const auto again = grammar_.choice();
    const auto once = compile(body, again);
    grammar_.branch(again, {once, next});
    return least == 0 ? again : once;
  }

  grammar::node_id repeat(const part& x, grammar::node_id next) {
    const auto& body = x.inner[0];
    const bool endless = x.max == grammar::unbounded;
    if (x.min > copies_max || (!endless && x.max > copies_max)) {
      const auto rule = grammar_.rule();
      grammar_.begin(rule, compile(body, grammar_.end()));
      return grammar_.repeat(rule, x.min, x.max, next);
    }
    auto copies = x.max, optional_from = x.min;
    if (endless) {
      const auto least = std::min(x.min, 1u);
      next = endlessly(body, least, next);
      copies = optional_from = x.min - least;
    }
    for (; copies > 0; --copies) {
      const auto copy = compile(body, next);
      next = copies > optional_from ? grammar_.maybe(copy, next) : copy;
    }
    return next;
  }

  grammar& grammar_;
  spelling how_;
  uint32_t steps_ = 0;
};

/// All sets of characters in it. Any character, where a match may be anywhere, is told from none.
std::vector<character_classes::set> sets_of(const part& all) {
  std::vector<character_classes::set> sets;
  std::vector<const part*> to_visit{&all};
  while (!to_visit.empty()) {
    const auto& x = *to_visit.back();
    to_visit.pop_back();
    if (x.what == part_kind::characters) sets.emplace_back(x.set.ranges());
    for (const auto& y : x.inner) to_visit.push_back(&y);
  }
  return sets;
}

bool is_lazy_part(const part& x) {
  return x.is_lazy || std::any_of(x.inner.begin(), x.inner.end(), is_lazy_part);
}

uint32_t longest_of(const part& x) {
  constexpr uint64_t most = grammar::unbounded;
  uint64_t sum = x.what == part_kind::characters ? 1 : 0, longest = 0;
  for (const auto& y : x.inner) {
    const auto one = longest_of(y);
    sum += one;
    longest = std::max<uint64_t>(longest, one);
  }
  if (x.what == part_kind::choice) sum = longest;
  if (x.what == part_kind::repeat) sum *= x.max;
  return static_cast<uint32_t>(std::min(sum, most));
}

} // namespace

bool regular_expression::is_lazy() const { return is_lazy_part(*root_); }

uint32_t regular_expression::longest() const { return longest_of(*root_); }

std::vector<regular_expression::alternative> regular_expression::alternatives() const {
  std::vector<alternative> all;
  for (const auto& one : root_->inner) {
    auto& x = all.emplace_back(alternative{one, false, false});
    auto& list = x.inner.inner;
    while (!list.empty() && list.front().what == part_kind::begin) {
      list.erase(list.begin());
      x.begins = true;
    }
    while (!list.empty() && list.back().what == part_kind::end) {
      list.pop_back();
      x.ends = true;
    }
  }
  return all;
}

grammar::node_id regular_expression::compile(grammar& g, match what, spelling how,
                                             grammar::node_id next) const {
  compiler c{g, how};
  const auto made_before = g.nodes().size();
  std::vector<grammar::node_id> branches;
  for (const auto& x : alternatives()) {
    const bool free = what == match::somewhere;
    auto first = c.compile(x.inner, free && !x.ends ? c.anything(next) : next);
    branches.push_back(free && !x.begins ? c.anything(first) : first);
  }
  const auto first = g.choice(std::move(branches));
  if (how == spelling::json)
    g.tells_apart(made_before, character_classes::of_sets(sets_of(*root_)), {{next}});
  return first;
}

} // namespace lamella::model
