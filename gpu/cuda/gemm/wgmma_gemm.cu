// Built for sm_90a alone: elsewhere the variants say that they cannot run.
#include "gpu/cuda/gemm/mma_variants.hpp"
#include "gpu/cuda/gemm/wgmma_gemm.cuh"

namespace lamella::gpu::cuda {

namespace {

template <class T, class Tile> cudaError_t prepare() {
  return cudaFuncSetAttribute(wgmma_gemm_kernel<T, Tile>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::shared_bytes);
}

template <class T, class Tile>
cudaError_t launch(const mma_gemm_args& args, uint32_t splits, cudaStream_t stream) {
  dim3 grid((args.rows + Tile::BM - 1) / Tile::BM, (args.outputs + Tile::BN - 1) / Tile::BN,
            splits);
  launch_kernel(wgmma_gemm_kernel<T, Tile>, grid, Tile::threads, Tile::shared_bytes, stream, args);
  return cudaGetLastError();
}

template <class Tile> constexpr mma_variant variant_of(std::string_view name) {
  return {name,
          Tile::BM,
          Tile::BN,
          Tile::shared_bytes,
          {prepare<__half, Tile>, prepare<__nv_bfloat16, Tile>},
          {launch<__half, Tile>, launch<__nv_bfloat16, Tile>}};
}

// BM, BN, STAGES. Two blocks share a multiprocessor but for the last two.
constexpr mma_variant variants[]{
    variant_of<wgmma_tile<16, 64, 10>>("w16x64"),
    variant_of<wgmma_tile<64, 64, 6>>("w64x64"),
    variant_of<wgmma_tile<64, 128, 4>>("w64x128"),
    variant_of<wgmma_tile<128, 64, 4>>("w128x64"),
    variant_of<wgmma_tile<128, 128, 6>>("w128x128"),
    variant_of<wgmma_tile<256, 128, 4>>("w256x128"),
};

} // namespace

std::span<const mma_variant> wgmma_variants() { return variants; }

} // namespace lamella::gpu::cuda
