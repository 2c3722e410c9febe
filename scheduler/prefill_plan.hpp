/// Chunked prefill: cuts waiting prompts into chunks (S-M10: bounded tokens per iteration, FCFS or
/// short prompts first); prompts with lost KV have an order of their own (L-M26, reliability A5).
#pragma once

#include "scheduler/types.hpp"

#include <algorithm>
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
  bool last = false;   ///< ends the prompt: its last row is sampled
  bool scored = false; ///< each of its rows gives the log probability of the token behind it
};

/// Rows of logits of an iteration that are scored at most: they take 64 MiB, or are 16.
constexpr uint32_t scored_rows_within(uint64_t vocabulary) {
  const uint64_t rows = (uint64_t{64} << 20) / (4 * std::max<uint64_t>(vocabulary, 1));
  return static_cast<uint32_t>(std::clamp<uint64_t>(rows, 16, 128));
}

/// Positions of context that cost a token as much as all else of it does, of the smallest models
/// there are; see positions_like_a_token().
constexpr uint32_t positions_least = 1024;

/// The same of a model: `products` and `attention` are multiplications of a token in a layer, the
/// latter for one position. Attention takes about twice as long for one as products do.
constexpr uint32_t positions_like_a_token(uint64_t products, uint64_t attention) {
  const auto positions = products / std::max<uint64_t>(2 * attention, 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(positions, positions_least, 1 << 20));
}

/// What it costs to compute `tokens` tokens from `position` on, in tokens of an empty context:
/// attention grows with the position. `positions`: positions_like_a_token().
constexpr uint64_t prefill_work(uint32_t position, uint32_t tokens,
                                uint32_t positions = positions_least) {
  return tokens + uint64_t{tokens} * (uint64_t{position} + tokens) / positions;
}

/// The cost of all pieces together. The output head and the sampler take about as long for a scored
/// row as all else.
inline uint64_t prefill_work(const std::vector<prefill_piece>& pieces,
                             uint32_t positions = positions_least) {
  uint64_t work = 0;
  for (const auto& x : pieces)
    work += prefill_work(x.position, x.tokens, positions) + (x.scored ? x.tokens : 0);
  return work;
}

/// In which order new prompts are computed.
enum class prompt_order : uint8_t {
  fcfs, ///< as they came (S-M10)
  /// By arrival plus four times the work that is left. A prompt lets only those pass that come
  /// within four times as long as it takes alone, so none starves, and a short one waits for none
  /// that is much longer.
  fair,
};

/// Bounds of one prefill iteration.
struct prefill_limits {
  uint32_t sequences = std::numeric_limits<uint32_t>::max();
  std::chrono::nanoseconds now{0};                      ///< by the clock of the entries
  uint64_t work = std::numeric_limits<uint64_t>::max(); ///< prefill_work of all pieces
  double work_ns = 1e6;       ///< measured time of a unit of work: weighs length against age
  uint32_t scored_rows = 128; ///< of all scored prompts; at least 1
  uint32_t positions = positions_least; ///< positions_like_a_token() of the model
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
/// New prompts: by prompt_order. Rebuilds: near deadlines first, then the fewest tokens left, so
/// that many sequences decode again early; entries that waited for `timeout` go before all these,
/// in order of arrival. Where both wait, rebuilds get `rebuild_percent` of the tokens and of the
/// work of an iteration, and the rest that new prompts leave. A prompt that ends waits for no more
/// than a quarter of an iteration of prompts that go on (`fair`). Scored prompts share the rows of
/// logits that an iteration may have; where none are left, they wait for the next one. Cost: O(n
/// log n) in the waiting prompts per iteration.
class prefill_plan {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds timeout = std::chrono::seconds{5};

  /// A prompt may be passed by those that come within so many times the time it takes alone.
  static constexpr double stretch = 4;

  /// What an iteration should take at most, unless configured otherwise.
  static constexpr std::chrono::milliseconds iteration_target{60};

  /// Each queue gets as many tokens of an iteration at least, whatever the bound of its work.
  static constexpr uint32_t tokens_least = 16;

  /// Whether a prompt of `tokens` tokens may start now; not called again after it returned true.
  using may_begin = std::function<bool(sequence_id sequence, uint32_t tokens)>;

  /// `rebuild_percent`: 1 to 99.
  explicit prefill_plan(uint32_t chunk_tokens, uint32_t rebuild_percent = 70,
                        prompt_order order = prompt_order::fcfs)
      : chunk_tokens_{chunk_tokens}, rebuild_percent_{rebuild_percent}, order_{order} {}

  /// `cached`: number of first tokens that have KV; fewer than `tokens`. `since`: arrival.
  /// `scored`: every row is; then none is cached.
  void add(sequence_id sequence, uint32_t tokens, uint32_t cached = 0, nanoseconds since = {},
           bool scored = false) {
    fresh_.push_back({{sequence, tokens, since}, cached, false, scored});
  }
  /// Goes before all other new prompts: it was at the head before.
  void add_first(sequence_id sequence, uint32_t tokens, uint32_t cached = 0, nanoseconds since = {},
                 bool scored = false) {
    fresh_.push_front({{sequence, tokens, since}, cached, false, scored});
  }
  void add(const rebuild_entry& x) { rebuilds_.push_back({x, x.cached}); }

  /// Drops a prompt that has tokens left; false when it has none.
  bool remove(sequence_id sequence);

  /// The pieces of the next iteration. A prompt that may not start holds back all that would start
  /// after it; started ones continue. Empty when no prompt waits or may start.
  std::vector<prefill_piece> next(const prefill_limits& limits, const may_begin& begins = {});
  std::vector<prefill_piece> next(uint32_t sequences_max, nanoseconds now = {},
                                  const may_begin& begins = {}) {
    return next(prefill_limits{.sequences = sequences_max, .now = now}, begins);
  }

  bool empty() const { return fresh_.empty() && rebuilds_.empty(); }
  /// prefill_work of all that waits. `positions`: positions_like_a_token().
  uint64_t waiting_work(uint32_t positions = positions_least) const;
  /// Of prompts that were started, rebuilds among them.
  uint64_t begun_tokens() const;
  uint64_t rebuild_tokens() const { return left_in(rebuilds_); }
  /// Prompts that have not begun, rebuilds first. Cost: O(waiting prompts).
  std::vector<sequence_id> unbegun() const;

private:
  struct entry : rebuild_entry {
    uint32_t done = 0;
    bool begun = false;
    bool scored = false;
    uint32_t left() const { return tokens - done; }
  };
  using entries = std::deque<entry>;
  /// What an iteration has left for one of the queues.
  struct room {
    uint64_t tokens, work;
    uint64_t work_beside;  ///< of a prompt that goes on beside one that ends
    uint32_t tokens_least; ///< whatever the work
    uint32_t positions;    ///< positions_like_a_token()
  };
  /// Tokens of `x` in this iteration; `beside_ended`: another prompt ends in it.
  uint32_t fitting(const entry& x, const room& left, bool beside_ended) const;
  static uint64_t left_in(const entries& list);
  void put_in_order(const prefill_limits& limits);

  uint32_t chunk_tokens_, rebuild_percent_;
  prompt_order order_;
  entries fresh_, rebuilds_;
};

} // namespace lamella::scheduler
