/// Who may start, who waits, who is refused (V-M14, V-M15; Lamina v1 5.5; reliability B1).
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace lamella::scheduler {

struct admission_limits {
  uint32_t queue_requests = 512;     ///< waiting entries
  uint64_t queue_tokens = 2'000'000; ///< prompt tokens of the waiting
};

/// One prompt that wants to run, with all its choices.
struct admission_entry {
  sequence_id first{};        ///< its first sequence; the others follow in order
  uint32_t choices = 1;       ///< seats it needs
  uint32_t prompt_tokens = 0; ///< to be prefilled
  uint32_t slots = 0;         ///< it needs now: prompt and a first window for each choice
  bool resumed = false;       ///< was running before: its tokens are kept, it goes first
  bool has_kv = false;        ///< and its KV, if that is still there
};

enum class admission_verdict : uint8_t { queued, queue_requests, queue_tokens };

/// A bounded queue, first in first out; those that were preempted go before those that never ran,
/// and of them first those that have their KV still: while they wait, nobody can use its slots. New
/// prompts never overtake the head of the queue, so a large one cannot be starved by small ones.
class admission {
public:
  explicit admission(admission_limits limits) : limits_{limits} {}

  /// For those that come from now on; who waits already is not refused.
  void set_limits(admission_limits limits) { limits_ = limits; }
  const admission_limits& limits() const { return limits_; }

  /// Accepted work is never refused again: resumed entries pass the limits.
  admission_verdict offer(const admission_entry& entry);

  /// The next entry to start when `seats` and `slots` are free, or nothing. Stays queued until
  /// started() or withdraw().
  std::optional<admission_entry> next(uint32_t seats, uint32_t slots) const;

  /// The head was started.
  void started();

  /// The entry is not wanted any more; false when it does not wait.
  bool withdraw(sequence_id first) { return take(first).has_value(); }

  /// Takes an entry out; nothing when it does not wait.
  std::optional<admission_entry> take(sequence_id first);

  size_t waiting() const { return queue_.size(); }
  uint64_t waiting_tokens() const { return tokens_; }

private:
  admission_limits limits_;
  std::deque<admission_entry> queue_;
  uint64_t tokens_ = 0;
};

} // namespace lamella::scheduler
