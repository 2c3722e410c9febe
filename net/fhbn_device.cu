#include "net/fhbn_device.hpp"

namespace lamella::net {

namespace {

using gpu::cuda::channel_port;
using gpu::cuda::channel_status;
using gpu::cuda::channel_turn;

__device__ __forceinline__ channel_status status_of(mlx5::post_status status) {
  switch (status) {
  case mlx5::post_status::ok:
    return channel_status::ok;
  case mlx5::post_status::timeout:
    return channel_status::timeout;
  case mlx5::post_status::aborted:
    return channel_status::aborted;
  case mlx5::post_status::queue_error:
    return channel_status::queue_error;
  case mlx5::post_status::no_room:
    return channel_status::no_room;
  }
  return channel_status::queue_error;
}

/// The stores of a posting kernel. Fences are at system scope: the reader is outside the GPU.
class device_stores {
public:
  __device__ device_stores(const channel_port& port, mlx5::wqe_block* staging)
      : limits_{port}, staging_{staging} {}

  /// Four 16-byte stores.
  __device__ void store_block(mlx5::wqe_block* to, const mlx5::wqe_block& block) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      reinterpret_cast<uint4*>(to)[i] =
          make_uint4(block.s[i].w[0], block.s[i].w[1], block.s[i].w[2], block.s[i].w[3]);
  }
  __device__ void release() { gpu::cuda::release_system(); }
  __device__ void store_record(uint32_t* to, uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
  }
  __device__ void store_doorbell(uint64_t* to, uint64_t value) {
    asm volatile("st.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }
  /// One bulk store out of shared memory, because per-lane stores to a register page may leave the
  /// GPU as separate packets. Needs sm_90.
  __device__ void push_block(uint64_t* to, const mlx5::wqe_block& block) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    store_block(staging_, block);
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(staging_));
    // Of all memory: the push must not pass the ring entry and the record either.
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" ::"l"(to), "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
#else
    store_doorbell(to, mlx5::doorbell_value(block.s[0]));
#endif
  }
  __device__ uint32_t load_completion(const uint32_t* from) {
    return gpu::cuda::load_relaxed(from);
  }
  __device__ mlx5::post_status over() {
    switch (limits_.over()) {
    case channel_status::ok:
      return mlx5::post_status::ok;
    case channel_status::timeout:
      return mlx5::post_status::timeout;
    default:
      return mlx5::post_status::aborted;
    }
  }

private:
  gpu::cuda::wait_limits limits_;
  mlx5::wqe_block* staging_; ///< shared memory of the block; only pushes need it
};

/// The queue in registers while a kernel works on it: its own stores to the ring would else make
/// the compiler read every field again.
class queue_copy {
public:
  __device__ explicit queue_copy(mlx5::send_queue* home) : q{*home}, home_{home} {}
  __device__ ~queue_copy() {
    home_->half = q.half;
    home_->produced = q.produced;
    home_->completed = q.completed;
    home_->signalled = q.signalled;
  }
  queue_copy(const queue_copy&) = delete;
  queue_copy& operator=(const queue_copy&) = delete;

  mlx5::send_queue q;

private:
  mlx5::send_queue* home_;
};

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
