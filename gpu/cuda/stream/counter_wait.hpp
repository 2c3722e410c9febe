/// The wait of a counter.
#pragma once

#include "gpu/cuda/stream/channel_port.hpp"

namespace lamella::gpu::cuda {

/// One thread that waits until one of two words is at least `value`; otherwise like enqueue_wait.
cudaError_t launch_wait_either(const uint64_t* a, const uint64_t* b, uint64_t value,
                               const channel_port& port, cudaStream_t stream);

} // namespace lamella::gpu::cuda
