/// How a kernel of one thread posts into an mlx5 send queue (net/rdma/mlx5/send_queue.hpp).
#pragma once

#include "gpu/cuda/stream/channel.cuh"
#include "net/rdma/mlx5/send_queue.hpp"

namespace lamella::net::mlx5 {

__device__ inline gpu::cuda::channel_status status_of(post_status status) {
  using gpu::cuda::channel_status;
  switch (status) {
  case post_status::ok:
    return channel_status::ok;
  case post_status::timeout:
    return channel_status::timeout;
  case post_status::aborted:
    return channel_status::aborted;
  case post_status::ended:
    return channel_status::ended;
  case post_status::queue_error:
    return channel_status::queue_error;
  case post_status::no_room:
    return channel_status::no_room;
  }
  return channel_status::queue_error;
}

/// The stores of a posting kernel. Fences are at system scope: the reader is outside the GPU.
class device_stores {
public:
  __device__ device_stores(const gpu::cuda::channel_port& port, wqe_block* staging)
      : limits_{port}, staging_{staging} {}

  /// Four 16-byte stores.
  __device__ void store_block(wqe_block* to, const wqe_block& block) {
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
  __device__ void push_block(uint64_t* to, const wqe_block& block) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    store_block(staging_, block);
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(staging_));
    // Of all memory: the push must not pass the ring entry and the record either.
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" ::"l"(to), "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
#else
    store_doorbell(to, doorbell_value(block.s[0]));
#endif
  }
  __device__ uint32_t load_completion(const uint32_t* from) {
    return gpu::cuda::load_relaxed(from);
  }
  __device__ post_status over() {
    switch (limits_.over()) {
    case gpu::cuda::channel_status::ok:
      return post_status::ok;
    case gpu::cuda::channel_status::timeout:
      return post_status::timeout;
    case gpu::cuda::channel_status::ended:
      return post_status::ended;
    default:
      return post_status::aborted;
    }
  }

private:
  gpu::cuda::wait_limits limits_;
  wqe_block* staging_; ///< shared memory of the block; only pushes need it
};

/// The queue in registers while a kernel works on it: its own stores to the ring would else make
/// the compiler read every field again.
class queue_copy {
public:
  __device__ explicit queue_copy(send_queue* home) : q{*home}, home_{home} {}
  __device__ ~queue_copy() {
    home_->half = q.half;
    home_->produced = q.produced;
    home_->completed = q.completed;
    home_->signalled = q.signalled;
  }
  queue_copy(const queue_copy&) = delete;
  queue_copy& operator=(const queue_copy&) = delete;

  send_queue q;

private:
  send_queue* home_;
};

} // namespace lamella::net::mlx5
