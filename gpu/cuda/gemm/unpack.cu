#include "gpu/cuda/gemm/unpack.hpp"
#include "gpu/cuda/numbers/halves.cuh"
#include "gpu/cuda/stream/launch.cuh"
#include "model/quantised_block.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

using model::tensor_type;

constexpr uint32_t threads = 256;

__device__ float half_of(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

/// Element i of a block, by the formula of model/quantised_block.hpp.
template <tensor_type type> __device__ float element(const uint8_t* b, uint32_t i) {
  using block = model::quantised_block<type>;
  const auto s = i / block::scale_elements;
  const float scale = half_of(block::d(b)) * static_cast<float>(block::scale(b, s));
  const float value = scale * static_cast<float>(block::level(block::code(b, i)));
  if constexpr (block::has_minimum)
    return value + half_of(block::m(b)) * static_cast<float>(block::minimum(b, s));
  else
    return value;
}

template <tensor_type type>
__global__ void unpack_blocks(const uint8_t* blocks, size_t count, __half* out) {
  begin_kernel();
  constexpr uint32_t elements = model::block_elements(type), bytes = model::block_bytes(type);
  for (size_t i = size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * threads)
    out[i] = narrow_saturating<__half>(
        element<type>(blocks + i / elements * bytes, static_cast<uint32_t>(i % elements)));
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
  auto* halves = static_cast<__half*>(out);
  const bool quantised = model::with_quantised(type, [&](auto known) {
    launch_kernel(unpack_blocks<decltype(known)::value>, grid, threads, 0, stream,
                  static_cast<const uint8_t*>(blocks), count, halves);
  });
  if (!quantised) {
    if (type != tensor_type::f32)
      return cudaMemcpyAsync(out, blocks, count * 2, cudaMemcpyDeviceToDevice, stream);
    launch_kernel(round_floats, grid, threads, 0, stream, static_cast<const float*>(blocks), count,
                  halves);
  }
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
