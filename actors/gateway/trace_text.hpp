/// A recording of all workers as text that trace viewers open.
#pragma once

#include "actors/protocol/traces.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// How far a worker's clock is ahead of this process's, by the round trip of a question.
struct clock_offset {
  int64_t offset_ns = 0, error_ns = 0;
  bool shared = false; ///< it is the same clock
};

/// What one round trip tells: `asked` and `answered` are times of this process.
clock_offset offset_by(const trace_begun& there, const std::string& own_host, int64_t asked_ns,
                       int64_t answered_ns);

/// What one worker recorded.
struct recorded_worker {
  trace_worker who;
  std::optional<clock_offset> clock; ///< of the quickest round trip
  std::string trouble;               ///< why something is missing; empty: nothing is
  std::vector<std::string> names;
  std::vector<traced_lane> lanes;
  std::vector<traced_span> spans; ///< in order of their begin
};

/// What all of them recorded.
struct recording {
  std::string release, model, time; ///< time: the date of the begin
  double seconds = 0;
  int64_t begin_ns = 0; ///< of this process's clock; times are written from here on
  std::vector<recorded_worker> workers;
};

/// Removes lanes that another worker of the same process has told of already.
void drop_told_twice(recording& x);

/// Words for a stream of a device: "batch 0", "prefill 1", "move 2".
std::string lane_words(const std::string& stream);

/// Chrome's trace event format, as Perfetto opens it: a process for each worker, a thread for each
/// lane, microseconds.
std::string trace_json(const recording& x);

} // namespace lamella::actors
