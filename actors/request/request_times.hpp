/// When what happened to a REQUEST: noted once, for metrics, log and spans.
#pragma once

#include "actors/request/request_state.hpp"

namespace lamella::actors {

/// It has KV slots and a place in a batch; the first time counts.
void note_admitted(request_state& st, std::chrono::steady_clock::time_point when);

/// The first rows of the request were computed then: what was before is its time in queues. The
/// first call counts.
void note_start(request_state& st, std::chrono::steady_clock::time_point when);

/// What was lost of a sequence is there again.
void goes_on(request_state& st, request_sequence& s, std::chrono::steady_clock::time_point now);

} // namespace lamella::actors
