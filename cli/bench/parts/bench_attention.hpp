/// `lamella bench attention`: attention over KV caches of each type, side by side.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::cli {

struct bench_attention_options {
  std::vector<gpu::half_type> caches{gpu::half_type::f16, gpu::half_type::bf16, gpu::half_type::q8,
                                     gpu::half_type::q4};
  std::vector<uint32_t> batches{1, 8, 32};
  std::vector<uint32_t> contexts{128, 1024, 4096}; ///< tokens before the queries
  uint32_t queries = 1;                            ///< of each sequence; more: a piece of a prompt
  uint32_t kv_heads = 8, group = 4, dim = 128;
  uint32_t repeats = 9;
  size_t cache_bytes = size_t{256} << 20; ///< per type: more than processors hold in their caches
  unsigned threads = 0;                   ///< 0: all processors that this process may use
  std::string kernels = "auto";
  bool json = false;
};

/// One layer's attention of one batch.
struct bench_attention_row {
  gpu::half_type cache;
  uint32_t batch = 0, context = 0;
  double best_us = 0, median_us = 0;
  double bytes = 0;      ///< of KV that must be read at least once
  double operations = 0; ///< two per product: Q with K, and the weights with V
  double best_gb_per_s() const { return bytes / best_us / 1e3; }
  double best_gflops() const { return operations / best_us / 1e3; }
};

/// All three steps of the operators (attention_args), with the new rows' K and V. The cache of each
/// shape has so many layers that no processor's cache holds them, and the types are measured in
/// turn, so that all see the same background load. The set is compared with the reference before.
/// Takes the cache's memory, at least a layer, per type. Throws std::runtime_error when the output
/// is wrong, the set does not support a shape, or a cache would take more than 2 GB.
std::vector<bench_attention_row> measure_attention(const bench_attention_options& options,
                                                   const gpu::operators& ops, unsigned threads);

/// Measures and prints, with the limits of the machine. Returns the exit code.
int bench_attention(const bench_attention_options& options);

/// f32, f16, bf16, q8.
std::string_view name_of(gpu::half_type type);

} // namespace lamella::cli
