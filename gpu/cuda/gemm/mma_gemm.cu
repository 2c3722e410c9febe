#include "gpu/cuda/gemm/mma_gemm.cuh"
#include "gpu/cuda/gemm/mma_gemm.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

template <class T, class Tile> cudaError_t prepare() {
  return cudaFuncSetAttribute(mma_gemm_kernel<T, Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              Tile::shared_bytes);
}

template <class T, class Tile>
cudaError_t launch(const mma_gemm_args& args, uint32_t splits, cudaStream_t stream) {
  dim3 grid((args.rows + Tile::BM - 1) / Tile::BM, (args.outputs + Tile::BN - 1) / Tile::BN,
            splits);
  launch_kernel(mma_gemm_kernel<T, Tile>, grid, Tile::threads, Tile::shared_bytes, stream, args);
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

// At most 163 KB of shared memory, what a block may have on sm_80; two blocks (the last: one) share
// a multiprocessor of sm_90, so that one copies while the other stores. All but the first and the
// last fit into 99 KB, which is all that sm_86, sm_89 and sm_120 have. BM, BN, BK, WM, WN, STAGES.
constexpr mma_variant variants[]{
    variant_of<mma_tile<16, 64, 128, 16, 16, 5>>("16x64"),
    variant_of<mma_tile<32, 64, 128, 32, 16, 4>>("32x64"),
    variant_of<mma_tile<64, 64, 64, 32, 32, 6>>("64x64"),
    variant_of<mma_tile<64, 128, 64, 64, 32, 4>>("64x128"),
    variant_of<mma_tile<128, 128, 64, 64, 32, 3>>("128x128"),
    variant_of<mma_tile<128, 256, 64, 64, 64, 3>>("128x256"),
};

const mma_variant& variant_at(uint32_t variant) {
  const auto own = static_cast<uint32_t>(std::size(variants));
  return variant < own ? variants[variant] : wgmma_variants()[variant - own];
}

__global__ void sum_parts_kernel(const float* parts, uint32_t splits, uint32_t rows,
                                 uint32_t outputs, float* out, uint32_t out_stride) {
  begin_kernel();
  const uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t stride = size_t{rows} * outputs;
  if (n >= outputs) return;
  for (uint32_t m = blockIdx.y; m < rows; m += gridDim.y) {
    const float* part = parts + size_t{m} * outputs + n;
    float sum = *part;
    for (uint32_t s = 1; s < splits; ++s) sum += part[s * stride];
    out[size_t{m} * out_stride + n] = sum;
  }
}

} // namespace

uint32_t splits_of(uint32_t outputs, uint32_t inputs) {
  // A block reads as many bytes of x as of w, and what a multiprocessor can read limits it: it
  // takes some 96 blocks of 64 outputs to read weights as fast as the memory of a device of 108 or
  // 132 multiprocessors gives them. From 64 blocks on a split pays only where inputs are many: it
  // costs a sum. A part keeps at least 512 inputs.
  uint32_t blocks = (outputs + 63) / 64;
  uint32_t splits = 1;
  while (splits < 8 && blocks * splits < 64 && inputs / (splits * 2) >= 512) splits *= 2;
  if (splits < 8 && blocks * splits < 96 && inputs / splits >= 8192) splits *= 2;
  return splits;
}

uint32_t inputs_per_split(uint32_t inputs, uint32_t splits) {
  return ((inputs + splits - 1) / splits + 127) / 128 * 128;
}

uint32_t mma_sync_variants() { return std::size(variants); }
uint32_t mma_variants() {
  return mma_sync_variants() + static_cast<uint32_t>(wgmma_variants().size());
}
std::string_view mma_variant_name(uint32_t variant) { return variant_at(variant).name; }

uint32_t default_mma_variant(uint32_t rows, uint32_t outputs, int shared_most) {
  const auto fits = [=](uint32_t v) { return variants[v].shared_bytes <= shared_most; };
  if (rows <= 16 && fits(0)) return 0;
  if (rows <= 32) return 1;
  if (rows <= 64) return outputs < 12288 ? 2 : 3;
  return rows <= 256 || outputs < 8192 || !fits(5) ? 4 : 5;
}

cudaError_t prepare_mma(int shared_most) {
  for (const auto& v : variants)
    for (auto prepare : v.prepare) {
      if (v.shared_bytes > shared_most) continue;
      if (auto error = prepare(); error != cudaSuccess) return error;
    }
  // Where these cannot run, their launches say so, as those of tiles that do not fit.
  for (const auto& v : wgmma_variants())
    for (auto prepare : v.prepare)
      if (prepare() != cudaSuccess) cudaGetLastError();
  return cudaSuccess;
}

cudaError_t launch_mma(uint32_t variant, const product& p, uint32_t splits, float* parts,
                       split_tickets tickets, cudaStream_t stream) {
  if (p.rows == 0 || p.outputs == 0) return cudaSuccess;
  if (variant >= mma_variants() || p.inputs % 8 != 0 || p.inputs == 0) return cudaErrorInvalidValue;
  const bool direct = splits == 1;
  const auto& tile = variant_at(variant);
  const auto tiles = uint64_t{(p.rows + tile.rows - 1) / tile.rows}
                     * ((p.outputs + tile.outputs - 1) / tile.outputs);
  const bool joined = !direct && tiles <= tickets.count;
  mma_gemm_args args{p.w,
                     p.x,
                     direct ? p.out : parts,
                     p.rows,
                     p.outputs,
                     p.inputs,
                     direct ? p.out_stride : p.outputs,
                     inputs_per_split(p.inputs, splits),
                     size_t{p.rows} * p.outputs,
                     joined ? tickets.first : nullptr,
                     p.out,
                     p.out_stride};
  const auto error = tile.launch[static_cast<size_t>(p.type)](args, splits, stream);
  if (error != cudaSuccess || direct || joined) return error;
  return launch_sum_parts(parts, splits, p.rows, p.outputs, p.out, p.out_stride, stream);
}

cudaError_t launch_sum_parts(const float* parts, uint32_t splits, uint32_t rows, uint32_t outputs,
                             float* out, uint32_t out_stride, cudaStream_t stream) {
  dim3 grid((outputs + 255) / 256, std::min(rows, 1024u));
  launch_kernel(sum_parts_kernel, grid, 256, 0, stream, parts, splits, rows, outputs, out,
                out_stride);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
