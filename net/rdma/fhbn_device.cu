#include "net/rdma/fhbn_device.hpp"
#include "net/rdma/mlx5/device_stores.cuh"

namespace lamella::net {

namespace {

using gpu::cuda::channel_turn;
using mlx5::device_stores, mlx5::queue_copy, mlx5::status_of;

/// False when the channel fails with it.
__device__ bool send(const fhbn_sender& sender, fhbn_message message, uint64_t seqno,
                     mlx5::doorbell how) {
  queue_copy copy{sender.queue};
  device_stores stores{sender.port, nullptr};
  const auto status =
      mlx5::post_message(copy.q, message.from, message.to, message.bytes, seqno, how, stores);
  if (status != mlx5::post_status::ok) gpu::cuda::fail(sender.port, status_of(status));
  return status == mlx5::post_status::ok;
}

__global__ void fhbn_send(fhbn_sender sender, fhbn_message message, channel_turn turn,
                          mlx5::doorbell how) {
  const bool failed = gpu::cuda::has_failed(sender.port);
  const auto seqno = gpu::cuda::take_turn(turn);
  if (!failed) send(sender, message, seqno, how);
}

__global__ void fhbn_exchange(fhbn_sender sender, fhbn_message message, channel_turn sent,
                              const uint64_t* mine, channel_turn received) {
  const bool failed = gpu::cuda::has_failed(sender.port);
  const auto seqno = gpu::cuda::take_turn(sent);
  const auto wanted = gpu::cuda::take_turn(received);
  if (!failed && send(sender, message, seqno, mlx5::doorbell::store))
    gpu::cuda::wait_for(mine, wanted, sender.port);
  // Only now: blocks that are made ready hold the place that the other side's kernels may need.
  gpu::cuda::admit_next_kernel();
}

__global__ void fhbn_push(fhbn_sender sender, fhbn_message message, channel_turn turn) {
  __shared__ alignas(128) mlx5::wqe_block staging;
  const bool failed = gpu::cuda::has_failed(sender.port);
  const auto seqno = gpu::cuda::take_turn(turn);
  if (failed) return;
  queue_copy copy{sender.queue};
  auto& queue = copy.q;
  device_stores stores{sender.port, &staging};
  // The word is free once its block is: room first, then the word, then the post.
  auto status = mlx5::reserve(queue, 1, stores);
  if (status == mlx5::post_status::ok) {
    const auto place = queue.produced & queue.mask;
    sender.staged[place] = seqno;
    const mlx5::region staged{sender.staged_region.address + place * sizeof(uint64_t),
                              sender.staged_region.key_be};
    status = mlx5::post_pushed(queue, message.from, message.to, message.bytes, staged, stores);
  }
  if (status != mlx5::post_status::ok) gpu::cuda::fail(sender.port, status_of(status));
}

} // namespace

cudaError_t enqueue_send(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                         channel_turn turn, mlx5::doorbell how) {
  fhbn_send<<<1, 1, 0, stream>>>(sender, message, turn, how);
  return cudaGetLastError();
}

cudaError_t enqueue_push(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                         channel_turn turn) {
  if (sender.staged == nullptr) return cudaErrorInvalidValue;
  fhbn_push<<<1, 1, 0, stream>>>(sender, message, turn);
  return cudaGetLastError();
}

cudaError_t enqueue_exchange(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                             channel_turn sent, const uint64_t* mine, channel_turn received) {
  fhbn_exchange<<<1, 1, 0, stream>>>(sender, message, sent, mine, received);
  return cudaGetLastError();
}

} // namespace lamella::net
