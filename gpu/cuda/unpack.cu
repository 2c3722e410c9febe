#include "gpu/cuda/halves.cuh"
#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/unpack.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

using model::tensor_type;

constexpr uint32_t threads = 256;

/// The low byte comes first; blocks are only 2-byte aligned.
__device__ float half_at(const unsigned char* p) {
  return __half2float(__ushort_as_half(*reinterpret_cast<const unsigned short*>(p)));
}

/// Element i of a block of 32.
template <tensor_type type> __device__ float element(const unsigned char* block, uint32_t i) {
  const float d = half_at(block);
  if constexpr (type == tensor_type::q8_0) {
    return d * static_cast<float>(static_cast<signed char>(block[2 + i]));
  } else {
    constexpr bool has_minimum = type == tensor_type::q4_1;
    const float m = has_minimum ? half_at(block + 2) : -8.0f * d;
    const unsigned byte = block[(has_minimum ? 4 : 2) + i % 16];
    return d * static_cast<float>(i < 16 ? byte & 15u : byte >> 4) + m;
  }
}

template <tensor_type type>
__global__ void unpack_blocks(const unsigned char* blocks, size_t count, __half* out) {
  begin_kernel();
  constexpr uint32_t bytes = model::block_bytes(type);
  for (size_t i = size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * threads)
    out[i] = narrow_saturating<__half>(
        element<type>(blocks + i / 32 * bytes, static_cast<uint32_t>(i % 32)));
}

__global__ void round_floats(const float* x, size_t count, __half* out) {
  begin_kernel();
  for (size_t i = size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * threads)
    out[i] = narrow_saturating<__half>(x[i]);
}

} // namespace

cudaError_t launch_unpack(tensor_type type, const void* blocks, uint32_t outputs, uint32_t inputs,
                          void* out, cudaStream_t stream) {
  if (inputs % model::block_elements(type) != 0) return cudaErrorInvalidValue;
  const size_t count = size_t{outputs} * inputs;
  if (count == 0) return cudaSuccess;
  const auto grid =
      static_cast<uint32_t>(std::min<size_t>((count + threads - 1) / threads, size_t{1} << 20));
  const auto* bytes = static_cast<const unsigned char*>(blocks);
  auto* halves = static_cast<__half*>(out);
  switch (type) {
  case tensor_type::f16:
  case tensor_type::bf16:
    return cudaMemcpyAsync(out, blocks, count * 2, cudaMemcpyDeviceToDevice, stream);
  case tensor_type::f32:
    launch_kernel(round_floats, grid, threads, 0, stream, static_cast<const float*>(blocks), count,
                  halves);
    break;
  case tensor_type::q8_0:
    launch_kernel(unpack_blocks<tensor_type::q8_0>, grid, threads, 0, stream, bytes, count, halves);
    break;
  case tensor_type::q4_0:
    launch_kernel(unpack_blocks<tensor_type::q4_0>, grid, threads, 0, stream, bytes, count, halves);
    break;
  case tensor_type::q4_1:
    launch_kernel(unpack_blocks<tensor_type::q4_1>, grid, threads, 0, stream, bytes, count, halves);
    break;
  }
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
