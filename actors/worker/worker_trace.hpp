/// A WORKER records what its devices do, for those who ask.
#pragma once

#include "actors/protocol/traces.hpp"

#include <chrono>

namespace lamella::actors {

struct worker_state;

/// The longest recording.
constexpr std::chrono::seconds trace_longest{30};

/// The monotonic clock of this process.
trace_begun clock_of_process();

/// Begins a recording.
trace_begun begin_trace(worker_state& st, const trace_begin& x);

/// A part of what was recorded. The last part frees it.
trace_page page_of_trace(worker_state& st, const trace_ask& x);

} // namespace lamella::actors
