#include "gpu/cuda/stream/channel.cuh"
#include "gpu/cuda/stream/launch.cuh"

namespace lamella::gpu::cuda {

namespace {

__global__ void channel_post(uint64_t* word, channel_turn turn, channel_port port) {
  begin_kernel();
  const bool failed = has_failed(port);
  const auto value = take_turn(turn);
  if (!failed) store_release(word, value);
}

__global__ void channel_wait(const uint64_t* word, channel_turn turn, channel_port port) {
  await_previous_kernel();
  wait_for(word, take_turn(turn), port);
  admit_next_kernel();
}

} // namespace

cudaError_t enqueue_post(cudaStream_t stream, uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  launch_kernel(channel_post, 1, 1, 0, stream, word, turn, port);
  return cudaGetLastError();
}

cudaError_t enqueue_wait(cudaStream_t stream, const uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  launch_kernel(channel_wait, 1, 1, 0, stream, word, turn, port);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
