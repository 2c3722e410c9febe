/// Admission: which prompts start, wait or are rejected (V-M14, V-M15; Lamina v1 5.5; reliability
/// B1).
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace lamella::scheduler {

struct admission_limits {
  uint32_t queue_requests = 512;     ///< waiting entries
  uint64_t queue_tokens = 2'000'000; ///< prompt tokens of waiting entries
};

/// One prompt with all its choices, waiting to run.
struct admission_entry {
  sequence_id first{};        ///< its first sequence; the others follow in order
  uint32_t choices = 1;       ///< seats it needs
  uint32_t prompt_tokens = 0; ///< to be prefilled
  uint32_t slots = 0;         ///< needed at start: prompt and a first window for each choice
  bool resumed = false; ///< ran before (preempted or recovered): its tokens are kept, it goes first
  bool has_kv = false;  ///< its KV is kept as well, if still valid
};

enum class admission_verdict : uint8_t { queued, queue_requests, queue_tokens };

/// A bounded FIFO queue. Preempted entries go before new ones, and among them those with KV first:
/// their slots are blocked while they wait. New prompts never overtake the head of the queue, so a
/// large one cannot be starved by small ones.
class admission {
public:
  explicit admission(admission_limits limits) : limits_{limits} {}

  /// Applies to new entries; waiting entries are not rejected.
  void set_limits(admission_limits limits) { limits_ = limits; }
  const admission_limits& limits() const { return limits_; }

  /// Accepted work is never rejected later: resumed entries bypass the limits.
  admission_verdict offer(const admission_entry& entry);

  /// The next entry to start when `seats` and `slots` are free, or nothing. Stays queued until
  /// started() or withdraw().
  std::optional<admission_entry> next(uint32_t seats, uint32_t slots) const;

  /// The head was started.
  void started();

  /// Cancels a waiting entry; false when it is not in the queue.
  bool withdraw(sequence_id first) { return take(first).has_value(); }

  /// Removes and returns an entry; nothing when it is not in the queue.
  std::optional<admission_entry> take(sequence_id first);

  size_t waiting() const { return queue_.size(); }
  uint64_t waiting_tokens() const { return tokens_; }

private:
  admission_limits limits_;
  std::deque<admission_entry> queue_;
  uint64_t tokens_ = 0;
};

} // namespace lamella::scheduler
