/// Processor time of the actors: what messages, scheduling and tokens cost beside the arithmetic.
#pragma once

#include <chrono>

namespace lamella::cli {

/// What the threads of this process that run actors have taken of the processors since they began:
/// CAF's own, whose names begin with `caf.`. Threads that have ended are not in it. Zero where the
/// kernel does not tell. Cost: a file per thread.
std::chrono::nanoseconds actor_threads_time();

} // namespace lamella::cli
