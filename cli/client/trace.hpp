/// A trace of a running server, read from the file that viewers open.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::cli {

/// A span of a lane; microseconds since the recording began.
struct trace_span {
  std::string name, kind; ///< "slice 3", and "compute", "send", "wait", "sample", "other", "idle"
  double begin = 0, end = 0;
  uint64_t iteration = 0, number = 0;
};

/// A stream of a worker's device.
struct trace_lane {
  std::string worker, lane;      ///< "model/0 (replica 0)", "batch 0, host/model/0"
  std::vector<trace_span> spans; ///< in order of their begin
};

/// A worker, or why there is nothing of it.
struct trace_source {
  std::string seat, clock;
  double error_us = 0;
  uint64_t spans = 0, dropped = 0;
};

struct trace_file {
  std::string model, time;
  double seconds = 0;
  std::vector<trace_lane> lanes; ///< in the order of their workers
  std::vector<trace_source> sources;
  std::vector<std::string> left_out; ///< "attention/1: reason"
};

/// Throws command_error (1), naming `what`, where the text is no trace of a server.
trace_file read_trace(std::string_view text, const std::string& what);

/// Seconds of "2s", "500ms" or "0.5"; `flag` is named where it is none. Throws command_error (2)
/// outside of least to most seconds.
double trace_seconds(const std::string& text, const std::string& flag, double least, double most);

} // namespace lamella::cli
