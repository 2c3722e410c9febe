/// Which tokens may come next in an answer that is held to a grammar.
#pragma once

#include "model/grammar/grammar.hpp"
#include "model/grammar/token_trie.hpp"
#include "model/token_mask.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace lamella::model {

class grammar_states;
struct endless_states;
struct runnable_grammar;
struct walk_knowledge;

/// A grammar over the tokens of a vocabulary. Every answer that is drawn under its masks is a
/// beginning of a text of the grammar, and can be completed; an end token may come where a text may
/// end, and nothing else may where it must.
///
/// A mask is looked up, or made by a walk over the vocabulary's trees (mask_walk), which may go
/// past all of them: some 1 ms at 150,000 tokens where the grammar's states are known, more where
/// they are not (mask_work_max). So there are two ways to ask: mask() and follow() make what is not
/// known, follow_at_once() does not.
///
/// Shared by all requests with the same grammar, which find each other's masks. Safe to be called
/// from several threads. What is allowed depends on the grammar and the answer alone, not on what
/// is known or who asks.
class output_constraint {
public:
  /// Bytes of masks that are kept; the oldest are made again when they are needed again.
  static constexpr size_t masks_kept_bytes = size_t{16} << 20;
  /// Bytes of states that are kept: of answers, and of walks.
  static constexpr size_t states_kept_bytes = size_t{8} << 20;
  static constexpr size_t walks_kept_bytes = size_t{24} << 20;
  /// Places of all states of one walk. Beyond them the next token is one of a single byte, so that
  /// even the most ambiguous grammar is served in bounded time.
  static constexpr size_t mask_work_max = 1'000'000;
  /// Work of the states (grammar_states::work()) that one mask may take, some 0.5 s: three times
  /// that of mask_work_max places in grammars whose states are found by few visits of each place.
  /// And that of one token of an answer; and bytes of states, which only one that takes nearly so
  /// much work comes to. What takes more is refused: it would keep everybody else waiting.
  static constexpr uint64_t walk_work_max = 32'000'000;
  static constexpr uint64_t token_work_max = 4'000'000;
  static constexpr size_t states_bytes_max = size_t{128} << 20;

  /// `ends`: the tokens that end an answer. Throws grammar_error when no text is possible,
  /// or a text may be at too many places at once.
  output_constraint(grammar g, std::shared_ptr<const token_trie> vocabulary,
                    std::vector<token_id> ends, uint32_t vocabulary_size,
                    size_t work_max = mask_work_max);
  ~output_constraint();

  /// What an answer so far is in the grammar.
  class position {
    friend class output_constraint;
    std::shared_ptr<const grammar_states> in_;
    uint32_t at_ = 0; ///< 0: no text begins like this
  };
  position start() const;
  bool is_dead(const position& x) const { return x.at_ == 0; }

  /// After one more token, which must not be an end token. Dead when the grammar does not allow it.
  /// Like all that makes what is not known, throws grammar_error where that takes too much work:
  /// the one answer cannot go on then.
  position advance(const position& from, token_id token);

  /// What may come next. Throws like advance().
  std::shared_ptr<const token_mask> mask(const position& x);

  struct followed {
    position at;
    std::shared_ptr<const token_mask> mask;
  };
  /// After some more tokens, and what may come next there. Throws like advance().
  followed follow(position from, std::span<const token_id> tokens);
  /// The same where the mask is known and the way there is short, within 0.1 ms whatever other
  /// threads do; else nothing.
  std::optional<followed> follow_at_once(const position& from, std::span<const token_id> tokens);

  size_t memory_bytes() const { return bytes_; }

private:
  using state_id = uint32_t; ///< of grammar_states

  std::shared_ptr<grammar_states> new_states() const;
  state_id enter(const position& x);
  state_id after(state_id from, token_id token);
  std::shared_ptr<const token_mask> known_mask(state_id near) const;
  void renew_states();
  state_id begin_walk(const position& x);
  token_mask walk(state_id from);
  void forget_walks();
  void keep(state_id near, std::shared_ptr<const token_mask> mask);
  void count_bytes();

  const std::shared_ptr<const token_trie> vocabulary_;
  const std::vector<token_id> ends_;
  const uint32_t vocabulary_size_;
  const size_t work_max_;
  const std::shared_ptr<const runnable_grammar> grammar_;
  const std::unique_ptr<const endless_states> endless_; ///< which no answer leads to

  /// Held for a walk; taken before `lock_`.
  std::mutex walking_;
  std::shared_ptr<grammar_states> walks_;
  std::unique_ptr<walk_knowledge> walks_know_; ///< null until there is a walk

  /// Guards what follows; held for microseconds, but where an answer is at very many places.
  mutable std::timed_mutex lock_;
  std::shared_ptr<grammar_states> states_;                                ///< of answers
  std::unordered_map<state_id, std::shared_ptr<const token_mask>> masks_; ///< by near state
  std::deque<state_id> oldest_;                                           ///< of the masks
  size_t masks_bytes_ = 0;
  std::atomic<size_t> bytes_ = 0, walks_bytes_ = 0;
};

/// One answer that is held to a constraint, while its tokens come. They are read when somebody asks
/// for the mask behind them.
class constrained_answer {
public:
  constrained_answer() = default; ///< is held to nothing
  explicit constrained_answer(std::shared_ptr<output_constraint> held_to);

  void generated(std::span<const token_id> tokens);

  /// Is it known what may come next? Finds out what is to be found at once.
  bool knows_mask();
  /// The same, however long it takes; throws grammar_error where that is too long
  /// (output_constraint).
  void make_mask();
  /// What may come next, where that is known; null: everything.
  const std::shared_ptr<const token_mask>& mask() const { return mask_; }

private:
  void take(output_constraint::followed x);

  std::shared_ptr<output_constraint> held_to_;
  output_constraint::position at_;
  std::vector<token_id> unread_;
  std::shared_ptr<const token_mask> mask_; ///< behind all tokens; null: unknown
};

} // namespace lamella::model
