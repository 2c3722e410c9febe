/// Traces: for some seconds workers record what their devices do, span by span, and hand it to the
/// control process afterwards.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// A worker records from now on for so long. Answered at once.
struct trace_begin {
  uint64_t id = 0; ///< of the recording; the parts of one process begin it together
  uint32_t for_ms = 0;
};

/// The monotonic clock of a process, read when it answers. Processes of one host share it.
struct trace_begun {
  int64_t now_ns = 0;
  std::string host; ///< identity of the running system (its boot), not a name
};

/// Asks for some of what was recorded, from span `first` on, counted over all lanes.
struct trace_ask {
  uint64_t id = 0, first = 0;
  uint32_t most = 0; ///< the worker keeps so many spans for the asker, the newest
};

/// The stream of a device.
struct traced_lane {
  uint64_t number = 0; ///< unique in its process
  std::string device, stream;
  uint64_t dropped = 0; ///< older spans that had no room
};

struct traced_span {
  int64_t begin_ns = 0, end_ns = 0; ///< of the worker's clock
  int64_t busy_ns = 0;
  uint64_t iteration = 0;
  uint32_t number = 0, rows = 0; ///< slice or layer
  uint32_t name = 0, lane = 0;   ///< index in `names` and in `lanes`
  uint8_t kind = 0;              ///< gpu::step_kind
};

/// At most `trace_page_spans` spans, in order of their begin.
struct trace_page {
  trace_begun clock;
  uint64_t total = 0; ///< spans that this worker has
  std::vector<std::string> names;
  std::vector<traced_lane> lanes;
  std::vector<traced_span> spans;
};

constexpr size_t trace_page_spans = 4096;

/// Asks MEMBERSHIP who could be recorded.
struct trace_workers_ask {};

struct trace_worker {
  std::string seat, name, host, part;
  uint32_t pid = 0;
  worker_actor handle;
};

struct trace_workers {
  std::vector<trace_worker> workers;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_TRACES_MESSAGES(x) \
  x(trace_begin) x(trace_begun) x(trace_ask) x(trace_page) x(trace_workers_ask) x(trace_workers)
// clang-format on
LAMELLA_PART(traced_lane)
LAMELLA_PART(traced_span)
LAMELLA_PART(trace_worker)
LAMELLA_TRACES_MESSAGES(LAMELLA_MADE_ELSEWHERE)
