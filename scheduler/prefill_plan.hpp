/// Chunked prefill: cuts waiting prompts into chunks (S-M10: FCFS, bounded tokens per iteration);
/// prompts with lost KV have an order of their own (L-M26, reliability A5).
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

/// A sequence that had generated tokens when its KV was lost: all its tokens are recomputed.
struct rebuild_entry {
  sequence_id sequence{};
  uint32_t tokens = 0;
  std::chrono::nanoseconds since{0}; ///< arrival, by the clock of the caller
  std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max(); ///< of its request
  uint32_t cached = 0; ///< number of first tokens that have KV
};

/// Two queues of prompts, cut into iterations of at most `chunk_tokens` tokens; short prompts share
/// an iteration. Chunk borders change no bit of the result (decision 9).
///
/// New prompts: FCFS. Rebuilds: near deadlines first, then the fewest tokens left, so that many
/// sequences decode again early; entries that waited for `timeout` go before all these, in order
/// of arrival. Where both wait, rebuilds get `rebuild_percent` of the tokens of an iteration, and
/// the rest that new prompts leave. Cost: O(n log n) in the waiting rebuilds per iteration.
class prefill_plan {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds timeout = std::chrono::seconds{5};

  /// Whether a prompt of `tokens` tokens may start now; not called again after it returned true.
  using may_begin = std::function<bool(sequence_id sequence, uint32_t tokens)>;

  /// `rebuild_percent`: 1 to 99.
  explicit prefill_plan(uint32_t chunk_tokens, uint32_t rebuild_percent = 70)
      : chunk_tokens_{chunk_tokens}, rebuild_percent_{rebuild_percent} {}

  /// `cached`: number of first tokens that have KV; fewer than `tokens`.
  void add(sequence_id sequence, uint32_t tokens, uint32_t cached = 0) {
    fresh_.push_back({{sequence, tokens}, cached});
  }
  /// Goes before all other new prompts: it was at the head before.
  void add_first(sequence_id sequence, uint32_t tokens, uint32_t cached = 0) {
    fresh_.push_front({{sequence, tokens}, cached});
  }
  void add(const rebuild_entry& x) { rebuilds_.push_back({x, x.cached}); }

  /// Drops a prompt that has tokens left; false when it has none.
  bool remove(sequence_id sequence);

  /// The pieces of the next iteration, of at most `sequences_max` prompts. A prompt that may not
  /// start holds back all that would start after it; started ones continue. Empty when no prompt
  /// waits or may start.
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
