/// `lamella bench gemm`: matmuls with weights of each type, side by side.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::cli {

struct bench_gemm_options {
  std::vector<model::tensor_type> types; ///< none: all
  std::vector<uint32_t> rows{1, 8, 64};  ///< of activations
  uint32_t outputs = 8192, inputs = 4096;
  uint32_t repeats = 15;
  unsigned threads = 0; ///< 0: all processors that this process may use
  std::string kernels = "auto";
  bool json = false;
};

/// One type at one number of rows.
struct bench_gemm_row {
  model::tensor_type type;
  uint32_t rows = 0;
  double bits_per_weight = 0;                ///< as packed
  double best_gflops = 0, median_gflops = 0; ///< 10^9 operations per second, 2 M N K each
};

/// The types are measured in turn, `repeats` times, so that all see the same background load; with
/// all of them in memory, no weights are cached at their turn, unless they are few or small. The
/// first outputs are compared with the reference before. Throws std::runtime_error when they are
/// wrong or the rows of the weights are not whole blocks.
std::vector<bench_gemm_row> measure_gemm(const bench_gemm_options& options,
                                         const gpu::operators& ops, unsigned threads);

/// Measures and prints, with the limits of the machine. Returns the exit code.
int bench_gemm(const bench_gemm_options& options);

} // namespace lamella::cli
