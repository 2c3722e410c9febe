#include "gpu/cuda/stream/channel.cuh"
#include "gpu/cuda/stream/counter_wait.hpp"
#include "gpu/cuda/stream/launch.cuh"

namespace lamella::gpu::cuda {

namespace {

__global__ void wait_either(const uint64_t* a, const uint64_t* b, uint64_t value,
                            channel_port port) {
  await_previous_kernel();
  wait_limits limits{port};
  auto status = channel_status::ok;
  while (load_relaxed(a) < value && load_relaxed(b) < value) {
    status = limits.over();
    if (status != channel_status::ok) break;
  }
  acquire_system();
  if (status != channel_status::ok) fail(port, status);
  admit_next_kernel();
}

} // namespace

cudaError_t launch_wait_either(const uint64_t* a, const uint64_t* b, uint64_t value,
                               const channel_port& port, cudaStream_t stream) {
  launch_kernel(wait_either, 1, 1, 0, stream, a, b, value, port);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
