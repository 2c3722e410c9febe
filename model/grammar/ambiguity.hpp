/// Finds out, before anything is held to a grammar, whether texts of it may be at too many places,
/// and where terminals of it are never left.
#pragma once

#include "model/grammar/runnable_grammar.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lamella::model {

class grammar_states;

/// Work of refuse_ambiguous(): places that are stepped from, 2 to 5 ms of them. The search
/// ends at two fifths of it where it has found no more places at one node in the last two thirds of
/// its work. Ways that are walked again and again are beside it.
constexpr size_t ambiguity_work_max = 60'000;
/// Work of its states (grammar_states::work()) after which the search ends as if there were nothing
/// more to find: about 100 ms. States of grammars that are ambiguous all over cost up to a thousand
/// times as much as others.
constexpr uint64_t ambiguity_states_work_max = 15'000'000;

/// Throws grammar_error where a text is found that may be at more than
/// runnable_grammar::places_max places of the grammar at once: repeats whose beginning may be at
/// any of many characters, parts that begin alike within each other.
///
/// The search walks from the start: to the states that are at one node in the most ways, and in
/// turn to the nearest ones. Counts that must be done first are passed at once. A state that
/// differs from an earlier one in counts far from their limits alone, or in what is open around the
/// three innermost rules, is gone on from only where it has more places. Where a way leads from
/// some nodes to more places at the same nodes, it is walked again and again. Once each time adds
/// as many places as the time before, that is taken to go on until a count comes to its limit.
///
/// So a grammar is refused with a text that shows why, and only growth that is taken to go on is
/// not walked to its end. The other way round nothing is proven of a grammar that has more states
/// than the work allows: a text that was not found leads to a state that is narrowed
/// (grammar_states::places_max). Some texts are not allowed behind it; what is drawn is a beginning
/// of a text of the grammar as ever.
/// Returns the work of its states: at most ambiguity_states_work_max, and that of one more.
uint64_t refuse_ambiguous(std::shared_ptr<const runnable_grammar> g,
                          size_t work_max = ambiguity_work_max);

/// Work of the states of find_endless(), some 5 ms.
constexpr uint64_t endless_work_max = 500'000;

/// States that texts go on from and never end: where terminals (grammar::terminal_end) must come
/// behind another one which goes on with all that they begin with. A comment up to the end of its
/// line is one where no line may end.
struct endless_states {
  std::shared_ptr<const grammar_states> in;
  std::vector<uint32_t> all; ///< of `in`
};
/// Looks for them among the states that come first, with the work that it takes; there may be
/// others. Throws grammar_error where the start is one.
endless_states find_endless(const std::shared_ptr<const runnable_grammar>& g, uint32_t reach);

} // namespace lamella::model
