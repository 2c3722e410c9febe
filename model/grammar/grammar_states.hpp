/// Runs a grammar byte by byte.
#pragma once

#include "model/grammar/grammar.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lamella::model {

/// A grammar as a deterministic automaton that is made while it is walked: a state is the set of
/// all places at which the text so far may be, each with the rules that are open there. What a byte
/// leads to is worked out once and looked up from then on, as long as there is room; grammars that
/// need more states (some need exponentially many) get slower, not larger. One thread at a time.
class grammar_states {
public:
  using state_id = uint32_t;
  /// No text of the grammar begins like this.
  static constexpr state_id dead = 0;

  /// Rules that are open at once; what nests deeper is not allowed.
  static constexpr uint32_t depth_max = 256;
  /// The first so many states are kept with what each byte leads to: 1 KiB each.
  static constexpr size_t states_kept = 16'384;
  static constexpr size_t states_max = 16 * states_kept;
  /// Places of one state, and visits of places between two calls of begin_steps(); beyond them
  /// grammar_error.
  static constexpr size_t places_max = 2'048;
  static constexpr uint64_t visits_max = 10'000'000;

  /// `available`: bytes of which a text can be made up to its end. Throws grammar_error when no
  /// text is possible.
  grammar_states(grammar g, const byte_set& available);

  state_id start() const { return start_; }
  /// Throws grammar_error where a bound is broken.
  state_id step(state_id from, uint8_t byte);
  /// May the text end here?
  bool accepts(state_id x) const { return states_[x].accepts; }

  /// Counts visits anew.
  void begin_steps() { visits_ = 0; }

  /// What was known at some time. forget() drops the states found since then that are beyond those
  /// that are kept.
  struct mark {
    size_t states, frames;
  };
  mark here() const { return {states_.size(), frames_.size()}; }
  void forget(mark since);
  bool full() const { return states_.size() > states_kept; }

  size_t memory_bytes() const;

private:
  using frame_id = uint32_t;
  static constexpr frame_id bottom = 0; ///< of the whole text
  static constexpr state_id unknown = ~state_id{0};

  /// An open rule: the node that called or repeats it, how often it was done before, and what else
  /// is open. Equal ones are one.
  struct frame {
    grammar::node_id at = 0;
    uint32_t count = 0;
    frame_id below = bottom;
    uint32_t depth = 0;
  };
  /// A node of bytes and what is open there.
  struct place {
    grammar::node_id at;
    frame_id top;
    friend auto operator<=>(const place&, const place&) = default;
  };
  struct state {
    std::vector<place> places; ///< ascending
    bool accepts = false;
    std::unique_ptr<std::array<state_id, 256>> next; ///< those known
  };

  void reach_all(grammar::node_id first, frame_id top);
  void leave_rule(frame_id top);
  void enter_repeat(grammar::node_id at, uint32_t count, frame_id below);
  void open_rule(grammar::node_id at, uint32_t count, frame_id below);
  state_id take_state();

  grammar grammar_;
  std::vector<bool> productive_; ///< by node
  std::vector<frame> frames_{1};
  std::unordered_multimap<uint64_t, frame_id> frame_of_; ///< by hash
  std::vector<state> states_;
  std::unordered_multimap<uint64_t, state_id> state_of_; ///< by hash
  state_id start_ = dead;
  uint64_t visits_ = 0;

  // The state that is being put together.
  std::vector<std::pair<grammar::node_id, frame_id>> to_visit_;
  std::unordered_set<uint64_t> visited_;
  std::vector<place> places_;
  bool accepts_ = false;
};

} // namespace lamella::model
