#include "gpu/cuda/stream/words.cuh"

#include "gpu/cuda/stream/launch.cuh"

namespace lamella::gpu::cuda {

namespace {

__global__ void raise(uint32_t* word) {
  begin_kernel();
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(1u) : "memory");
}

__global__ void fetch(const uint4* host, size_t count, uint4* device) {
  begin_kernel();
  for (auto i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    device[i] = host[i];
}

} // namespace

cudaError_t launch_fetch(const std::byte* host, size_t bytes, std::byte* device,
                         cudaStream_t stream) {
  constexpr unsigned threads = 128, blocks_max = 32;
  const auto count = (bytes + 15) / 16;
  if (count == 0) return cudaSuccess;
  const auto wanted = static_cast<unsigned>((count + threads - 1) / threads);
  const auto blocks = wanted < blocks_max ? wanted : blocks_max;
  launch_kernel(fetch, blocks, threads, 0, stream, reinterpret_cast<const uint4*>(host), count,
                reinterpret_cast<uint4*>(device));
  return cudaGetLastError();
}

cudaError_t launch_raise(uint32_t* word, cudaStream_t stream) {
  launch_kernel(raise, 1, 1, 0, stream, word);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
