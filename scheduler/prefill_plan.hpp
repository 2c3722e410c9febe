/// Cuts waiting prompts into chunks (S-M10: first come first served, bounded tokens per iteration),
/// those whose KV was lost in an order of their own (L-M26, reliability A5).
#pragma once

#include "scheduler/types.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

namespace lamella::scheduler {

/// A piece of one prompt in one prefill iteration.
struct prefill_piece {
  sequence_id sequence{};
  uint32_t position = 0; ///< of its first token
  uint32_t tokens = 0;
  bool last = false; ///< ends the prompt: its last row is sampled
};

/// A sequence that had answered when its KV was lost: all its tokens are computed again.
struct rebuild_entry {
  sequence_id sequence{};
  uint32_t tokens = 0;
  std::chrono::nanoseconds since{0}; ///< when it came, by the clock of the caller
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max(); ///< of its request
  uint32_t cached = 0; ///< of the tokens: the first ones, whose K and V are there
};

/// Two queues of prompts, cut into iterations of at most `chunk_tokens` tokens; short prompts share
/// an iteration. Chunk borders change no bit of the result (decision 9).
///
/// New prompts: first come, first served. Rebuilds: those whose deadline is near, then those with
/// the fewest tokens left, so that many decode again early; whoever has waited for `patience` goes
/// before all these, in the order they came. Where both wait, rebuilds get `rebuild_percent` of the
/// tokens of an iteration, and what new prompts leave.
/// Cost: O(n log n) in the waiting rebuilds per iteration.
class prefill_plan {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds patience = std::chrono::seconds{5};

  /// May a prompt of so many tokens begin now? Asked once with the answer yes.
  using may_begin = std::function<bool(sequence_id sequence, uint32_t tokens)>;

  /// `rebuild_percent`: 1 to 99.
  explicit prefill_plan(uint32_t chunk_tokens, uint32_t rebuild_percent = 70)
      : chunk_tokens_{chunk_tokens}, rebuild_percent_{rebuild_percent} {}

  /// `cached`: of the tokens, the first ones, whose K and V are there; fewer than all.
  void add(sequence_id sequence, uint32_t tokens, uint32_t cached = 0) {
    fresh_.push_back({{sequence, tokens}, cached});
  }
  /// Before all other new prompts: its turn had come before.
  void add_first(sequence_id sequence, uint32_t tokens, uint32_t cached = 0) {
    fresh_.push_front({{sequence, tokens}, cached});
  }
  void add(const rebuild_entry& x) { rebuilds_.push_back({x, x.cached}); }

  /// Drops a prompt that has tokens left; false when it has none.
  bool remove(sequence_id sequence);

  /// The pieces of the next iteration, of at most `sequences_max` prompts. A prompt that may not
  /// begin holds back all that would begin after it; those begun go on. Empty when nothing waits,
  /// or nothing that may begin.
  std::vector<prefill_piece> next(uint32_t sequences_max, nanoseconds now = {},
                                  const may_begin& begins = {});

  bool empty() const { return fresh_.empty() && rebuilds_.empty(); }
  uint64_t waiting_tokens() const { return left_in(fresh_) + left_in(rebuilds_); }
  uint64_t rebuild_tokens() const { return left_in(rebuilds_); }

private:
  struct entry : rebuild_entry {
    uint32_t done = 0;
    bool begun = false;
    uint32_t left() const { return tokens - done; }
  };
  using entries = std::deque<entry>;
  static uint64_t left_in(const entries& list);
  void put_in_order(nanoseconds now);

  uint32_t chunk_tokens_, rebuild_percent_;
  entries fresh_, rebuilds_;
};

} // namespace lamella::scheduler
