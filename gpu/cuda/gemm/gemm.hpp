/// Matrix matmuls on a CUDA device whose bytes do not depend on who else is in the batch.
///
/// **The arithmetic of a weight shape is fixed first, the algorithm second.** An output is a chain
/// of tensor-core matmuls over ascending inputs, cut into splits_of(N, K) parts that are summed in
/// ascending order: a function of the weight's shape alone. Which kernel runs at a number of rows
/// may differ, but only kernels whose bytes were compared with the fixed arithmetic on the device,
/// at several numbers and offsets of rows, are ever taken. So timing decides about speed and never
/// about bits, and a row has the same bytes alone, in a batch, on another replica of its device
/// class, and before anything was measured.
#pragma once

#include "gpu/cuda/gemm/mma_gemm.hpp"

#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lamella::gpu::cuda {

/// What fixes the bytes of a product.
enum class arithmetic : uint8_t {
  own,     ///< the chain of mma_gemm.cuh; library kernels only where they agree with it
  library, ///< the library's first kernel without split for the shape; others where they agree
  fastest, ///< none: the fastest kernel at each number of rows. Not row-invariant: for comparison
};

/// A way to compute a product.
struct algorithm {
  bool library = false;
  uint32_t variant = 0;          ///< of mma_gemm.hpp
  cublasLtMatmulAlgo_t choice{}; ///< when `library`
};

/// Numbers of rows are served by the first class that holds them; longer calls are cut into pieces.
constexpr std::array<uint32_t, 7> row_classes{16, 32, 64, 128, 256, 512, 1024};

/// Rows of one piece of a product: 1024, fewer where outputs are many, so that the parts of split
/// matmuls and the room for tuning stay small.
uint32_t rows_max_of(uint32_t outputs);

/// What was found for one class of one shape.
struct class_choice {
  algorithm best;
  double microseconds = 0;     ///< of `best`
  uint32_t offered = 0;        ///< library algorithms tried
  uint32_t refused = 0;        ///< algorithms that were faster and had other bytes
  double own_microseconds = 0; ///< of the fastest own variant that agrees; 0: none
  uint32_t own_best = 0;       ///< that variant
};

/// How the matmuls of one weight shape are computed.
struct gemm_plan {
  uint32_t splits = 1;
  uint32_t rows_max = 0; ///< rows of one piece
  std::array<class_choice, row_classes.size()> classes;
};

struct weight_shape {
  dense_type type;
  uint32_t outputs, inputs;
  friend auto operator<=>(const weight_shape&, const weight_shape&) = default;
};

/// One product of several that share their input.
struct gemm_part {
  dense_matrix weight;
  float* out;          ///< [M, out_stride], the first N of each row are written
  uint32_t out_stride; ///< >= weight.outputs
};

/// A product in the library's own words.
struct library_problem;

/// Products of a device. `run` may be called by one thread at a time and inside a stream capture;
/// it neither allocates nor waits.
class gemm {
public:
  static constexpr size_t library_workspace = size_t{32} << 20;

  explicit gemm(arithmetic fixed = arithmetic::own) : fixed_{fixed} {}
  ~gemm();
  gemm(const gemm&) = delete;
  gemm& operator=(const gemm&) = delete;

  /// Opens the library on the current device. Says what is wrong, or nothing.
  std::optional<std::string> open();

  /// Chooses algorithms for the shape of `weights`: device matrices of one shape, ordinary numbers,
  /// through which timing rotates (several, or more than the L2 in all). Waits for the device,
  /// allocates for a while 2 * rows_max * N * 4 + rows_max * K * 2 bytes, takes 0.2 s for small
  /// shapes and 1 s for large ones. Without it `run` uses the own kernels' defaults, with the same
  /// bytes (unless the arithmetic is the library's: then every shape must be tuned). So it does
  /// where there is no memory for choosing: then there is no plan.
  std::optional<std::string> tune(std::span<const dense_matrix> weights, cudaStream_t stream);

  /// Null before tune().
  const gemm_plan* plan_of(const weight_shape& shape) const;

  /// Bytes that `run` needs as scratch for up to `rows` rows, the parts of split matmuls included.
  static size_t scratch_bytes(uint32_t rows, uint32_t outputs, uint32_t inputs);

  /// out = x * weight^T for each part; x is [rows, inputs] of the weights' type, 16-byte aligned.
  /// Scratch is 256-byte aligned. Without tickets the parts of split products are summed by kernels
  /// of their own, to the same bytes.
  cudaError_t run(const void* x, uint32_t rows, std::span<const gemm_part> parts, void* scratch,
                  size_t scratch_size, cudaStream_t stream, split_tickets tickets = {});

  /// One product by one algorithm, at most rows_max rows. For tuning and measuring.
  cudaError_t run_one(const algorithm& with, const product& p, uint32_t splits, void* scratch,
                      size_t scratch_size, cudaStream_t stream, split_tickets tickets = {});

  /// Algorithms that the library offers for a product, best guess first.
  std::vector<algorithm> offers(const product& p, uint32_t splits, bool any_reduction, int most);

private:
  cublasStatus_t library_product(const cublasLtMatmulAlgo_t* choice, const product& p,
                                 uint32_t splits, float* parts, void* workspace,
                                 size_t workspace_size, cudaStream_t stream);

  struct problem_key {
    weight_shape shape;
    uint32_t rows, out_stride, splits;
    friend auto operator<=>(const problem_key&, const problem_key&) = default;
  };

  arithmetic fixed_;
  int shared_most_ = 0; ///< bytes of shared memory that a block may have, since open()
  cublasLtHandle_t library_ = nullptr;
  std::map<problem_key, std::shared_ptr<library_problem>> problems_; ///< of late, at most 256
  std::map<weight_shape, gemm_plan> plans_;
};

} // namespace lamella::gpu::cuda
