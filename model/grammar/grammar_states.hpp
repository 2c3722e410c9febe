/// Runs a grammar byte by byte.
#pragma once

#include "model/grammar/hash_index.hpp"
#include "model/grammar/runnable_grammar.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lamella::model {

/// A grammar as a deterministic automaton that is made while it is walked: a state is the set of
/// all places at which the text so far may be, each with the rules that are open there and how
/// often each of them may or must still be repeated. A place is left out where another one differs
/// in counts only and allows all that it allows, so that ambiguous counts do not multiply.
///
/// Where terminals of a lexer end (grammar::terminal_end), a state has another one behind it: that
/// of the texts in which they ended. It is gone on from with characters that no terminal goes on
/// with.
///
/// What a state leads to does not depend on what was asked before. States are only ever added: who
/// has one of more than enough memory_bytes() goes on with an empty one and import()s what it
/// needs. One thread at a time.
class grammar_states {
public:
  using state_id = uint32_t;
  /// No text of the grammar begins like this.
  static constexpr state_id dead = 0;

  /// Rules that are open at once; what nests deeper is not allowed.
  static constexpr uint32_t depth_max = 256;
  /// Places of one state, and visits of places that a step takes. Of what is beyond them nothing is
  /// allowed: an answer is still a beginning of a text of the grammar.
  static constexpr size_t places_max = runnable_grammar::places_max;
  static constexpr size_t visits_max = 65'536;
  /// Bytes of what is kept of where bytes lead to from states: 4 for each class of bytes
  /// (byte_classes), of which most grammars have fewer than 100.
  static constexpr size_t rows_bytes_max = size_t{16} << 20;

  /// Is it kept where bytes lead to? Not worth it where most steps are made once.
  enum class steps : uint8_t { kept, made_again };
  /// `reach`: near() keeps apart what the next so many bytes can tell apart.
  grammar_states(std::shared_ptr<const runnable_grammar> g, uint32_t reach,
                 steps known = steps::kept);
  grammar_states(grammar_states&&) = default;
  grammar_states(const grammar_states&) = delete;

  state_id start() const { return start_; }
  state_id step(state_id from, uint8_t byte);

  /// From now on steps may take `more` work() together, and memory_bytes() come to `bytes`. The
  /// step that would take more throws grammar_error and is not made; all others are as they were.
  void allow(uint64_t more, size_t bytes) {
    work_end_ = work_ + more;
    bytes_end_ = bytes;
  }
  /// May the text end here?
  bool accepts(state_id x) const { return states_[x].accepts; }
  size_t places_of(state_id x) const {
    return states_[x].places + states_[states_[x].behind].places;
  }
  /// Places at one node of the grammar, where they are most: they differ in what is open there.
  size_t most_alike(state_id x) const;
  /// A hash of the nodes that its places are at, whatever is open there.
  uint64_t nodes_of(state_id x) const;
  /// A hash of its places, of what is open there the innermost rules alone, with counts as near()
  /// has them: of states that differ in nothing else texts go on alike until those are left.
  uint64_t innermost_of(state_id x);
  /// Were there more places than may be at once, or more visits? Some are left out then.
  bool is_narrowed(state_id x) const { return states_[x].narrowed; }
  /// Bytes that may come next; one of those that lead to the same places. Valid until it is called
  /// again.
  const std::vector<uint8_t>& telling_bytes(state_id x);

  /// The state that stands for all that allow the same next `reach` bytes: counts that cannot come
  /// to their limits within them are no counts there. Many states have the same one.
  state_id near(state_id x);
  /// near(step(from, byte)), and found again faster.
  state_id near_step(state_id from, uint8_t byte) {
    if (const auto* known = states_[from].leads_to)
      if (const auto to = known[grammar_->classes.of[byte]]; to != unknown) return to & ~counts;
    return near(make_step(from, byte));
  }

  /// Which plain characters lead to the same, from here and from all states that plain characters
  /// lead to; null where it is not known.
  const character_classes* classes_of(state_id x) const;
  /// Which bytes lead to the same from every state.
  const byte_classes& bytes() const { return grammar_->classes; }

  /// The same state as `x` of `from`, which is of the same grammar.
  state_id import(const grammar_states& from, state_id x);

  /// No text leads to these states of `from` any more.
  void bar(const grammar_states& from, std::span<const state_id> all);

  /// States that come later: for each open repeat that must go on, one in which it need not any
  /// more. A text that leads there may be at more places. Repeats in `passed` are left out, and
  /// those that were looked at are added.
  std::vector<state_id> past_counts(state_id x, visit_set& passed);
  /// How often what is open in `x` and was not in `before` can go on in the same way before a count
  /// comes to its limit, or more would be open than may be. Unbounded: neither will.
  uint32_t times_left(state_id x, state_id before) const;

  size_t states() const { return states_.size(); }
  /// Times a visit of a place costs what a comparison of two open rules does, some nanoseconds.
  static constexpr uint64_t visit_work = 8;
  /// What was done to make the states: visits of places and comparisons of what is open there.
  uint64_t work() const { return work_; }
  size_t memory_bytes() const;

private:
  using frame_id = uint32_t;
  static constexpr frame_id bottom = 0; ///< of the whole text
  static constexpr state_id unknown = hash_index::none;

  /// An open rule: the node that called or repeats it, how often it must and may come again, and
  /// what else is open. Equal ones are one.
  struct frame {
    grammar::node_id at = 0;
    uint32_t least = 0, most = 0;
    frame_id below = bottom;
    uint32_t depth = 0;
    frame_id near = unknown;
    uint64_t hash = 0, shape = 0; ///< of all that is open; without counts
  };
  /// What is kept of where bytes lead to from a state, by class of bytes: the near state, with
  /// `counts` where that is not the state itself; unknown where nobody has asked.
  static constexpr state_id counts = state_id{1} << 31;
  /// A node of bytes and what is open there.
  struct place {
    grammar::node_id at;
    frame_id top;
    friend bool operator==(const place&, const place&) = default;
  };
  struct state {
    uint32_t first_place = 0, places = 0;
    bool accepts = false, narrowed = false, barred = false;
    state_id behind = dead; ///< of the texts in which the terminals here ended
    state_id near = unknown;
    state_id* leads_to = nullptr; ///< its row
  };

  std::span<const place> places(state_id x) const {
    return {places_.data() + states_[x].first_place, states_[x].places};
  }
  /// What terminals may do where a node is reached: begin, or also end.
  enum class terminals : uint8_t { begin, end };

  /// Its places, and those of the state behind it.
  template <class Tell> void each_place(state_id x, Tell&& tell) const {
    for (const auto& p : places(x)) tell(p);
    if (states_[x].behind != dead)
      for (const auto& p : places(states_[x].behind)) tell(p);
  }
  void begin_state();
  void reach_all(grammar::node_id first, frame_id top, terminals may);
  void reach_all();
  [[noreturn]] static void refuse_more();
  void visit(grammar::node_id at, frame_id open);
  void leave_rule(frame_id top);
  void enter_repeat(grammar::node_id at, uint32_t least, uint32_t most, frame_id below);
  frame_id open_frame(grammar::node_id at, uint32_t least, uint32_t most, frame_id below);
  uint32_t reach_of(grammar::node_id at) const;
  frame_id near_frame(frame_id top);
  frame_id import_frame(const grammar_states& from, frame_id top);
  bool covers(frame_id a, frame_id b) const;
  void drop_covered(size_t begin, size_t end);
  state_id take_state();
  state_id make_step(state_id from, uint8_t byte);
  byte_set step_places(state_id from, uint8_t byte);
  state_id take_state_behind(state_id behind, uint8_t byte);
  state_id take_ended_state();
  enum class going : uint8_t { no, within_character, on };
  going terminals_go() const;
  void keep_step(state_id from, state_id to, const byte_set& alike);
  byte_set known_alike(state_id x, uint8_t byte) const;
  state_id* make_row();

  std::shared_ptr<const runnable_grammar> grammar_;
  uint32_t reach_;
  steps known_steps_;
  std::vector<frame> frames_{1};
  hash_index frame_of_;
  std::vector<state> states_;
  std::vector<place> places_; ///< of all states
  hash_index state_of_;
  static constexpr size_t rows_together = 32;
  std::vector<std::unique_ptr<state_id[]>> rows_; ///< so many at once, which stay where they are
  size_t rows_left_ = 0;                          ///< of the last ones
  state_id start_ = dead;

  // The state that is being put together.
  std::vector<std::pair<grammar::node_id, frame_id>> to_visit_;
  visit_set visited_;
  std::vector<place> found_, ended_; ///< the second: at ends of terminals
  state_id behind_ = dead;
  terminals terminals_ = terminals::begin;
  size_t visits_ = 0;
  std::vector<uint8_t> telling_; ///< what telling_bytes() returned last
  std::vector<uint64_t> hashes_; ///< for it, and for innermost_of()
  std::vector<frame_id> way_;    ///< for near_frame()
  mutable uint64_t work_ = 0;    ///< of all states
  uint64_t work_end_ = ~uint64_t{0};
  size_t bytes_end_ = ~size_t{0};
  bool accepts_ = false;
};

} // namespace lamella::model
