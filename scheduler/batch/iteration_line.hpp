/// The iterations of a lane that are launched and not ended: their numbers and attempts
/// (decision 20, reliability A1).
#pragma once

#include "scheduler/prefill_plan.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

namespace lamella::scheduler {

/// One part of a launch: a row of the sequence of a seat, or a piece of a prompt.
struct launch_span {
  uint32_t member = 0;                        ///< number of the slot table with its KV
  std::variant<uint32_t, prefill_piece> what; ///< number of the seat, or the piece

  bool is_row() const { return std::holds_alternative<uint32_t>(what); }
};

/// At most two iterations are in flight, and one with prompts is alone. When one fails, all are
/// dropped: they run again, and the failures in a row number the attempt. Nothing of a dropped
/// iteration counts, whenever its answer comes.
class iteration_line {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr size_t most = 2; ///< iterations in flight

  /// A launched iteration.
  struct flight {
    uint64_t iteration = 0;
    uint32_t attempt = 0;
    nanoseconds launched{0};
    std::vector<launch_span> spans{}; ///< in the order of the launch
    uint32_t rows = 0;

    bool has_tokens() const;
    bool has_prompts() const;
    std::vector<prefill_piece> pieces() const;
  };

  /// A launch at `now`. With `same` it keeps the number of the iteration before, which it repeats.
  flight& begin(std::vector<launch_span> spans, bool same, nanoseconds now);

  /// Is this the oldest iteration in flight? An answer to any other one is too late.
  bool is_current(uint64_t iteration, uint32_t attempt) const;
  bool contains(uint64_t iteration, uint32_t attempt) const;

  /// The oldest iteration has ended well; it is returned.
  flight end();

  /// An iteration in flight has failed; `silent`: it timed out, and no device reported a failure.
  /// Drops all that is in flight. Returns the pieces of prompts that must run again first.
  std::vector<prefill_piece> fail(bool silent);

  /// May another iteration be launched behind the one in flight, as far as these are concerned?
  /// Each attempt after a failure clears the streams before it: one that runs must not be cleared.
  bool may_run_ahead() const;

  bool idle() const { return flights_.empty(); }
  const std::deque<flight>& flights() const { return flights_; } ///< oldest first
  const flight& newest() const { return flights_.back(); }
  uint64_t iteration() const { return iteration_; } ///< number of the newest
  uint32_t failures() const { return failures_; }   ///< in a row
  bool silent() const { return silent_; }           ///< one of these was

private:
  std::deque<flight> flights_;
  uint64_t iteration_ = 0;
  uint32_t failures_ = 0;
  bool silent_ = false;
};

} // namespace lamella::scheduler
