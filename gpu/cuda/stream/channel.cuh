/// How a stream of a device tells another device, or a CPU thread, that bytes are there, and how it
/// waits for that, without any host call in between (Lamina, section 4.1: the receiver polls a
/// sequence number in memory).
///
/// A word (gpu/ring/ring.hpp) may lie in this device's memory, in mapped pinned host memory or in
/// the memory of a peer device. `post` is a release at system scope: everything that earlier
/// kernels of the stream wrote is visible to whoever sees the word. `wait` is one thread that polls
/// with relaxed loads and fences once at the end, because an acquire load would throw away the L1
/// cache in every turn. Kernels behind a wait may read the payload with ordinary loads.
///
/// No wait is endless: it ends with the deadline, the abort word, the end of the ring or a newer
/// epoch, and the first reason stays in `channel_control::status`. Later waits of a failed channel
/// end at once. The rest of the stream then runs on garbage: consumers must be harmless on any
/// bytes, and the host looks at the status before it publishes a result.
#pragma once

#include "gpu/cuda/stream/channel_port.hpp"
#include "gpu/cuda/stream/early_launch.cuh"
#include "gpu/ring/ring.hpp"

#include <cuda_runtime.h>

namespace lamella::gpu::cuda {

constexpr uint32_t turns_per_clock = 64;   ///< waits read the clock this often
constexpr uint32_t turns_per_abort = 1024; ///< and what the host says, reads over PCIe, this often

__device__ __forceinline__ uint64_t global_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ __forceinline__ uint64_t load_relaxed(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

/// One-sided fences need sm_90 and PTX 8.6 (CUDA 12.7); before them there is only the stronger one.
#if (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)                                              \
    && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 7))
__device__ __forceinline__ void acquire_system() {
  asm volatile("fence.acquire.sys;" ::: "memory");
}
__device__ __forceinline__ void release_system() {
  asm volatile("fence.release.sys;" ::: "memory");
}
#else
__device__ __forceinline__ void acquire_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ __forceinline__ void release_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
#endif

__device__ __forceinline__ void store_release(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ __forceinline__ uint64_t take_turn(const channel_turn& turn) {
  if (turn.counter == nullptr) return turn.fixed;
  return *turn.counter += 1;
}

/// Whether an earlier kernel of this channel failed. An ordinary load: kernels of one stream see
/// what the ones before them wrote.
__device__ __forceinline__ bool has_failed(const channel_port& port) {
  return port.failed != nullptr && *port.failed != 0;
}

/// Notes the first error of a channel where host and device look for it.
__device__ inline void fail(const channel_port& port, channel_status why) {
  if (port.failed) *port.failed = static_cast<uint32_t>(why);
  atomicCAS_system(&port.control->status, 0u, static_cast<uint32_t>(why));
}

/// The limits of one wait. `over` is called once per turn that brought nothing.
class wait_limits {
public:
  __device__ explicit wait_limits(const channel_port& port) : port_{port} {}

  __device__ channel_status over() {
    if (turns_ == 0) {
      if (port_.failed && load_relaxed(port_.failed) != 0) return channel_status::aborted;
      end_ = global_ns() + port_.deadline_ns;
    }
    ++turns_;
    if (turns_ % turns_per_abort == 0) {
      if (load_relaxed(&port_.control->abort) != 0) return channel_status::aborted;
      if (port_.ended != nullptr && load_relaxed(port_.ended) != 0) return channel_status::ended;
    }
    if (turns_ % turns_per_clock == 0 && global_ns() > end_) return channel_status::timeout;
    return channel_status::ok;
  }

private:
  const channel_port& port_;
  uint64_t end_ = 0; ///< told in the first turn: a word that is there already costs no clock
  uint32_t turns_ = 0;
};

/// Waits in one thread until `word` has reached `wanted`. Payload may be read after it returns ok;
/// other threads of the block need a barrier behind it.
__device__ inline channel_status wait_for(const uint64_t* word, uint64_t wanted,
                                          const channel_port& port) {
  wait_limits limits{port};
  auto status = channel_status::ok;
  uint64_t seen = load_relaxed(word);
  while (seen < wanted) {
    status = limits.over();
    if (status != channel_status::ok) break;
    seen = load_relaxed(word);
  }
  acquire_system();
  if (status == channel_status::ended) { // what was sent before the end counts
    seen = load_relaxed(word);
    if (seen >= wanted) {
      acquire_system();
      status = channel_status::ok;
    }
  }
  if (status == channel_status::ok && !same_epoch(seen, wanted)) status = channel_status::stale;
  if (status != channel_status::ok) fail(port, status);
  return status;
}

/// Counts the blocks of a kernel that have ended; called by one thread of each, behind a barrier.
/// True for the last one: what all blocks wrote and read is then ordered before what it does. The
/// word is in device memory, 0 before and after.
__device__ inline bool last_block(uint32_t* arrived, uint32_t blocks) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(arrived)
               : "memory");
  if (before + 1 != blocks) return false;
  *arrived = 0;
  return true;
}

/// A post by the kernel that writes the payload, called by all its threads at its end: the last
/// block posts, and no kernel is needed for it.
__device__ inline void post_by_last_block(uint32_t* arrived, uint64_t* word,
                                          const channel_turn& turn, const channel_port& port) {
  __syncthreads();
  if (threadIdx.x != 0 || !last_block(arrived, gridDim.x)) return;
  const auto value = take_turn(turn);
  if (!has_failed(port)) store_release(word, value);
}

} // namespace lamella::gpu::cuda
