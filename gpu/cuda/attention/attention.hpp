/// The attention operators on a CUDA device: the three steps of gpu/kernels/operators.hpp, one
/// kernel each, and the expansion of a plan's runs into a slot table, once per iteration.
///
/// Nothing here allocates or waits; every launch returns the error of the launch itself. All memory
/// is the device's. Launches may be captured in a CUDA graph: see attention_plan.hpp.
///
/// Arithmetic: scores and outputs on tensor cores (f16 or bf16 in, fp32 sums), tiles of 32
/// positions with a running maximum, units of 512 positions folded in ascending order, the own
/// position last, in fp32. K and V of a cache of q8 are rounded to the wire's type before their
/// matmuls.
/// Probabilities are rounded to the wire's type and normalised by the sum of the rounded ones; 2^x
/// is the device's `ex2.approx.ftz` (2 ulp). Against exact attention over the same cache the
/// relative error is about 3e-4 in f16 and 2e-3 in bf16 before the output is rounded to the wire;
/// in q8 up to 2e-3 where scores are a few tens, for K is rounded twice, and as much as in bf16
/// more under a wire of bf16. A row's bits depend on the row alone, in spans of one row and of
/// several alike. Kernels over q8 were not run on hardware.
#pragma once

#include "gpu/cuda/attention/attention_plan.hpp"
#include "gpu/cuda/stream/kernel_tail.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace lamella::gpu::cuda {

/// A call for one layer.
struct attention_device_args {
  half_type type = half_type::f16; ///< of the cache: f16, bf16 or q8
  half_type wire = half_type::f16; ///< of all below: the cache's; f16 or bf16 where that is q8, but
                                   ///< q8 where append_kv is to copy what another cache holds
  std::byte* cache = nullptr;      ///< [slots, 2, H]: K of all heads, then V; 16-byte aligned
  uint32_t kv_heads = 0;           ///< H
  uint32_t dim = 0;                ///< D
  uint32_t group = 0;              ///< G
  float scale = 0;                 ///< > 0

  const std::byte* q = nullptr;     ///< [H, M, G, D], 16-byte aligned like all below
  const std::byte* k_new = nullptr; ///< [H, M, D]; not read by attend_previous
  const std::byte* v_new = nullptr; ///< [H, M, D]; not read by attend_previous
  std::byte* out = nullptr;         ///< [H, M, G, D]; written by attend_new

  attention_capacity capacity;
  std::byte* plan = nullptr;    ///< capacity.device_bytes(): the uploaded plan and the slot table
  std::byte* records = nullptr; ///< attention_record_bytes(...): kept from attend_previous to
                                ///< attend_new, then free
  /// A word of the device; not 0: an earlier kernel of the work has failed, so what came may be
  /// anything, others may still read the slots, and nothing is written to the cache. Null: never.
  const uint32_t* failed = nullptr;
};

/// Null if the kernels can run this shape, else why not.
const char* attention_unsupported(uint32_t kv_heads, uint32_t dim, uint32_t group, half_type cache,
                                  half_type wire);

/// Bytes of the records of one layer. Layers of one stream may share them.
size_t attention_record_bytes(const attention_capacity& capacity, uint32_t kv_heads, uint32_t group,
                              uint32_t dim);

/// Writes the slot table of an uploaded plan. Once per iteration, before the launches below.
/// 4 bytes per position.
cudaError_t launch_expand_runs(const attention_capacity& capacity, std::byte* plan,
                               cudaStream_t stream);

/// Rows of spans of one row attend to all earlier positions. Memory-bound: reads
/// position * row_bytes per row once, whatever G is, and writes one record in 512 positions.
cudaError_t launch_attend_previous(const attention_device_args& args, cudaStream_t stream);

/// Writes K and V of all rows at their slots. Reads and writes them once.
cudaError_t launch_append_kv(const attention_device_args& args, cudaStream_t stream);

/// Rows of longer spans attend to their earlier positions; then every row folds its records, merges
/// its own position and is rounded to the wire.
cudaError_t launch_attend_new(const attention_device_args& args, cudaStream_t stream);

/// What the last kernel of attend_new may do besides.
struct attention_end {
  bool append = false; ///< what append_kv does; only where all spans have one row, because rows of
                       ///< longer spans read the cache before
  kernel_tail tail{};  ///< `out` has been written, q and the new K and V have been read
};
cudaError_t launch_attend_new(const attention_device_args& args, const attention_end& end,
                              cudaStream_t stream);

/// What L2 is told of loads: to fetch 128 bytes with a miss, and to let go of them first.
enum class load_hint : uint8_t { fetch_128, read_once };

/// How attend_previous keeps memory busy; not part of the numerics. A warp has a ring of `slots`
/// tiles of K or V (of 128 elements; twice as many of 64), 4 or 6; `warps` warps share a
/// multiprocessor, or as many as fit. Where there is work for more than one round, `spare`
/// multiprocessors are left to others: memory is busy without them, and the matmuls of K and V
/// need not wait for the attention to Q when replica and shard share a device.
struct attention_tuning {
  int slots, warps;
  load_hint hint;
  int spare = 8;
};
/// The first is the default.
inline constexpr attention_tuning attention_tunings[] = {
    {4, 7, load_hint::fetch_128},    {4, 7, load_hint::read_once},     {4, 6, load_hint::fetch_128},
    {4, 5, load_hint::fetch_128},    {4, 4, load_hint::fetch_128},     {6, 4, load_hint::fetch_128},
    {4, 7, load_hint::fetch_128, 0}, {4, 7, load_hint::fetch_128, 16},
};

/// The same with a tuning of the list above; for benchmarks. bf16 and q8 have the kernels of the
/// first alone.
cudaError_t launch_attend_previous(const attention_device_args& args, cudaStream_t stream,
                                   const attention_tuning& tuning);

} // namespace lamella::gpu::cuda
