/// What the attention kernels need beyond C++ and the names CUDA gives it: instructions that have
/// no other name, shared memory and launches. The rest of the kernels is plain code over them.
///
/// A test that runs the kernels' own sources without a device (tests/emulated) brings its own
/// versions and defines LAMELLA_EMULATED_DEVICE.
#pragma once

#include "gpu/cuda/attention/attention.hpp"
#include "gpu/cuda/stream/early_launch.cuh"
#include "gpu/cuda/stream/launch_count.hpp"
#include "gpu/cuda/stream/residency.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#ifndef LAMELLA_EMULATED_DEVICE
namespace lamella::gpu::cuda {

/// 2^x; exact for x = 0, and 0 for -infinity.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// sum += a * b: 16 x 16 halves by 16 x 8, fp32 sums; fragments as in PTX mma.m16n8k16.
__device__ inline void multiply_halves(float (&sum)[4], const uint32_t (&a)[4],
                                       const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// The same of bf16.
__device__ inline void multiply_bfloats(float (&sum)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Four 8 x 8 matrices of halves from shared memory: lane l gives the address of row l % 8 of
/// matrix l / 8.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// The same, each matrix transposed.
__device__ inline void load_transposed(uint32_t (&to)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
}

/// Sixteen bytes, or four, of shared memory.
__device__ inline uint4 load_shared(uint32_t at) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(at)
               : "memory");
  return x;
}
__device__ inline uint32_t load_shared_word(uint32_t at) {
  uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  return x;
}
__device__ inline void store_shared(uint32_t at, uint4 x) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}

/// An 8 x 8 matrix of halves, a row in four lanes, transposed.
__device__ inline uint32_t transpose(uint32_t pair) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

/// What cp.async wants to know of data that is read once.
__device__ inline uint64_t evict_first() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Copies 16 bytes to shared memory, or writes zeros there.
template <load_hint hint>
__device__ inline void copy_async(uint32_t to, const void* from, bool really) {
  const auto bytes = really ? 16 : 0;
  const auto global = __cvta_generic_to_global(from);
  if constexpr (hint == load_hint::fetch_128)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
                 "r"(bytes)
                 : "memory");
  else
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to),
        "l"(global), "r"(bytes), "l"(evict_first())
        : "memory");
}

__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until all but the last `pending` groups of this thread have arrived.
template <int pending> __device__ inline void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// The block's dynamic shared memory, at a multiple of 1024.
__device__ inline uint32_t shared_memory() {
  extern __shared__ __align__(1024) std::byte memory[];
  return static_cast<uint32_t>(__cvta_generic_to_shared(memory));
}

inline cudaError_t device_limit(cudaDeviceAttr which, int& value) {
  int device = 0;
  if (auto error = cudaGetDevice(&device); error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&value, which, device);
}

/// Blocks of a kernel that run at once on the whole device; the kernel may then use that much
/// shared memory.
template <class Kernel>
cudaError_t resident_blocks(Kernel kernel, unsigned threads, size_t shared, int& blocks) {
  return resident_blocks_of(reinterpret_cast<const void*>(kernel), threads, shared, blocks);
}

template <class Kernel, class... Args>
cudaError_t launch_blocks(Kernel kernel, uint64_t blocks, unsigned threads, size_t shared,
                          cudaStream_t stream, Args... args) {
  count_launch();
  const auto grid = static_cast<unsigned>(blocks);
  if (early_launches()) return launch_early(stream, grid, threads, shared, kernel, args...);
  kernel<<<grid, threads, shared, stream>>>(args...);
  return cudaPeekAtLastError();
}

} // namespace lamella::gpu::cuda
#endif
