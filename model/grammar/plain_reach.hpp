/// How far any text is allowed: what lets masks take whole lengths of tokens at once.
#pragma once

#include "model/grammar/grammar_states.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace lamella::model {

/// Of near states of a grammar: how many plain characters (token_trie) may come next, whichever
/// they are. In strings any may, also in those of a pattern that is searched for anywhere, and up
/// to their limit in those of bounded length.
class plain_reach {
public:
  using state_id = grammar_states::state_id;

  /// `characters_max`: more are not asked for. Makes states as it needs them; `states` outlives it.
  plain_reach(grammar_states& states, uint32_t characters_max)
      : states_{states}, characters_max_{characters_max} {}

  struct result {
    uint32_t least = 0;        ///< any text of so many characters may come next
    bool nothing_more = false; ///< and no longer text of plain characters
  };
  /// A function of the grammar and the near state alone. Looks at the states that come first, at no
  /// more than work_max places of them; beyond them no text counts as allowed for certain.
  result of(state_id x);

private:
  static constexpr size_t work_max = 200;

  /// One plain character on.
  struct step {
    bool any = false, all = false; ///< may some come, may all?
    uint32_t first = 0, count = 0; ///< where all lead: of targets_
  };
  step step_of(state_id x);
  result look(state_id x);

  grammar_states& states_;
  const uint32_t characters_max_;
  std::unordered_map<state_id, result> known_;
  std::unordered_map<state_id, step> steps_;
  std::vector<state_id> targets_;
};

} // namespace lamella::model
