/// A GPU that posts its own sends: work requests of an mlx5 queue written by a kernel, behind the
/// kernel that produced the payload, with no CPU in between (Lamina, section 4.1).
///
/// One kernel of one thread per send: stream order makes it the only poster of its queue. Three
/// ways to tell the adapter: an 8-byte store to its register, a 64-byte BlueFlame push, or a
/// published count for a CPU thread that rings (net/rdma/mlx5/doorbell_proxy.hpp), where the
/// register cannot be mapped into CUDA. What net/rdma/fhbn_bench.cu measures; links of the service
/// post their rings in the same way (net/rdma/ring_posts.cu). Not run on an adapter yet. Sends and
/// pushes ran on an H200 against the adapter in software, before the queue was kept in registers;
/// the exchange has not run on a device.
#pragma once

#include "gpu/cuda/stream/channel.cuh"
#include "net/rdma/mlx5/send_queue.hpp"

namespace lamella::net {

/// One message: `bytes` at `from` of the local arena go to `to` of the peer's.
struct fhbn_message {
  uint64_t from, to;
  uint32_t bytes;
};

/// What a send kernel needs of its end. All pointers are valid on the device.
struct fhbn_sender {
  mlx5::send_queue* queue; ///< device memory; used by one stream only
  gpu::cuda::channel_port port;
  uint64_t* staged = nullptr;   ///< pushes: a word per block of the ring, in registered memory,
  mlx5::region staged_region{}; ///< so that none is overwritten before its work request has run
};

/// Enqueues the send of payload and seqno, unless the channel has failed before. Returns the launch
/// error. Does not wait; may be captured into a graph.
cudaError_t enqueue_send(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                         gpu::cuda::channel_turn turn, mlx5::doorbell how);

/// The same as one pushed work request: the seqno lands right behind the payload, so `to + bytes`
/// must be the word the peer polls, a multiple of 8.
cudaError_t enqueue_push(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                         gpu::cuda::channel_turn turn);

/// A send by doorbell and the wait for its answer by one kernel.
cudaError_t enqueue_exchange(cudaStream_t stream, const fhbn_sender& sender, fhbn_message message,
                             gpu::cuda::channel_turn sent, const uint64_t* mine,
                             gpu::cuda::channel_turn received);

} // namespace lamella::net
