/// Time of a stream by kind of kernel. For benchmarks: the events between kernels cost some time
/// themselves.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::gpu::cuda {

/// Whether marks are kept. Read with every launch, so it costs nothing where it is off.
inline std::atomic<bool> tracing{false};

/// Makes room for so many marks and keeps them from now on. Not while kernels wait for each other.
void start_trace(size_t marks);

/// Says what comes next in a stream. What comes after the last mark that has room is not traced.
void trace_mark(cudaStream_t stream, std::string_view what);

/// From a mark to the next one of its stream, gaps between kernels included.
struct traced_kind {
  std::string what;
  uint64_t count = 0;
  double milliseconds = 0;
};

/// Ends the trace; all its streams have ended. Kinds with the most time first. A stream is told by
/// its number, "0: product".
std::vector<traced_kind> end_trace();

} // namespace lamella::gpu::cuda
