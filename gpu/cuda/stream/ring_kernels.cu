#include "gpu/cuda/stream/channel.cuh"
#include "gpu/cuda/stream/launch.cuh"
#include "gpu/cuda/stream/ring_kernels.cuh"

namespace lamella::gpu::cuda {

namespace {

__global__ void send_frame(frame_header header, frame_header* slot, uint64_t* sent, uint64_t value,
                           channel_port port) {
  begin_kernel();
  if (has_failed(port)) return; // what this stream computed since is garbage
  *slot = header;
  store_release(sent, value);
}

/// Read once, past the L1: the memory may be the host's, and the slot has been used before.
__device__ frame_header copy_of(const frame_header* slot) {
  frame_header copy;
  const auto* from = reinterpret_cast<const uint64_t*>(slot);
  auto* to = reinterpret_cast<uint64_t*>(&copy);
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = load_relaxed(from + i);
  return copy;
}

__device__ bool matches(const frame_header& x, const frame_header& expected) {
  return x.magic == expected.magic && x.version == expected.version && x.kind == expected.kind
         && x.cluster == expected.cluster && x.epoch == expected.epoch
         && x.iteration == expected.iteration && x.table_version == expected.table_version
         && x.attempt == expected.attempt && x.layer == expected.layer
         && x.payload_bytes == expected.payload_bytes;
}

__global__ void receive_frame(frame_header expected, const frame_header* slot, const uint64_t* sent,
                              uint64_t value, channel_port port) {
  await_previous_kernel();
  if (wait_for(sent, value, port) == channel_status::ok && !matches(copy_of(slot), expected))
    fail(port, channel_status::wrong_frame);
  admit_next_kernel();
}

} // namespace

cudaError_t launch_send_frame(const frame_header& header, frame_header* slot, uint64_t* sent,
                              uint64_t value, const channel_port& port, cudaStream_t stream) {
  launch_kernel(send_frame, 1, 1, 0, stream, header, slot, sent, value, port);
  return cudaGetLastError();
}

cudaError_t launch_receive_frame(const frame_header& expected, const std::byte* slot,
                                 const uint64_t* sent, uint64_t value, const channel_port& port,
                                 cudaStream_t stream) {
  launch_kernel(receive_frame, 1, 1, 0, stream, expected,
                reinterpret_cast<const frame_header*>(slot), sent, value, port);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
