#include "gpu/cuda/gemm/gemm.hpp"

#include "gpu/cuda/stream/launch_count.hpp"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

cudaDataType_t library_type(dense_type type) {
  return type == dense_type::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

constexpr size_t problems_max = 256;

} // namespace

/// Descriptors of one product as the library sees it: column-major, out^T[N, M] = w^T^T * x^T. A
/// split product is a batch over pieces of K.
struct library_problem {
  cublasLtMatmulDesc_t operation{};
  cublasLtMatrixLayout_t w{}, x{}, out{};
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

  library_problem(const product& p, uint32_t splits) {
    keep(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto transpose = CUBLAS_OP_T;
    keep(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                        sizeof transpose));
    const uint32_t k = p.inputs / splits;
    const auto type = library_type(p.type);
    const uint32_t stride = splits == 1 ? p.out_stride : p.outputs;
    layout(&w, type, k, p.outputs, p.inputs, splits, k);
    layout(&x, type, k, p.rows, p.inputs, splits, k);
    layout(&out, CUDA_R_32F, p.outputs, p.rows, stride, splits,
           static_cast<int64_t>(p.rows) * p.outputs);
  }
  ~library_problem() {
    cublasLtMatrixLayoutDestroy(out);
    cublasLtMatrixLayoutDestroy(x);
    cublasLtMatrixLayoutDestroy(w);
    cublasLtMatmulDescDestroy(operation);
  }
  library_problem(const library_problem&) = delete;
  library_problem& operator=(const library_problem&) = delete;

private:
  void keep(cublasStatus_t s) {
    if (status == CUBLAS_STATUS_SUCCESS) status = s;
  }
  void layout(cublasLtMatrixLayout_t* to, cudaDataType_t type, uint64_t rows, uint64_t columns,
              int64_t leading, uint32_t batch, int64_t stride) {
    keep(cublasLtMatrixLayoutCreate(to, type, rows, columns, leading));
    if (batch == 1 || *to == nullptr) return;
    const auto count = static_cast<int32_t>(batch);
    keep(cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                          sizeof count));
    keep(cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                          sizeof stride));
  }
};

namespace {

constexpr uint32_t library_alignment = 16; ///< bytes, of every operand

/// The library cuts K into equal pieces only, and wants aligned rows.
bool library_can(const product& p, uint32_t splits) {
  if (splits > 1) return inputs_per_split(p.inputs, splits) * splits == p.inputs;
  return p.out_stride * sizeof(float) % library_alignment == 0
         && reinterpret_cast<uintptr_t>(p.out) % library_alignment == 0;
}

size_t parts_bytes(uint32_t rows, uint32_t outputs, uint32_t splits) {
  return splits == 1 ? 0 : (size_t{rows} * outputs * splits * 4 + 255) / 256 * 256;
}

} // namespace

uint32_t rows_max_of(uint32_t outputs) {
  return outputs <= 65536 ? 1024 : outputs <= 131072 ? 512 : 256;
}

gemm::~gemm() {
  if (library_ != nullptr) cublasLtDestroy(library_);
}

std::optional<std::string> gemm::open() {
  int device = 0;
  auto error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&shared_most_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) error = prepare_mma(shared_most_);
  if (error != cudaSuccess) return std::string{"matrix kernels: "} + cudaGetErrorString(error);
  if (library_ == nullptr)
    if (auto status = cublasLtCreate(&library_); status != CUBLAS_STATUS_SUCCESS)
      return std::string{"cuBLASLt: "} + cublasLtGetStatusString(status);
  return std::nullopt;
}

const gemm_plan* gemm::plan_of(const weight_shape& shape) const {
  auto at = plans_.find(shape);
  return at == plans_.end() ? nullptr : &at->second;
}

size_t gemm::scratch_bytes(uint32_t rows, uint32_t outputs, uint32_t inputs) {
  const auto piece = std::min(rows, rows_max_of(outputs));
  return parts_bytes(piece, outputs, splits_of(outputs, inputs)) + library_workspace;
}

cublasStatus_t gemm::library_product(const cublasLtMatmulAlgo_t* choice, const product& p,
                                     uint32_t splits, float* parts, void* workspace,
                                     size_t workspace_size, cudaStream_t stream) {
  // Descriptors are made once: an iteration has the same matmuls as the one before.
  if (problems_.size() >= problems_max) problems_.clear();
  auto& known = problems_[{{p.type, p.outputs, p.inputs}, p.rows, p.out_stride, splits}];
  if (!known) known = std::make_shared<library_problem>(p, splits);
  const auto& problem = *known;
  if (problem.status != CUBLAS_STATUS_SUCCESS) return problem.status;
  count_launch();
  const float one = 1, zero = 0;
  float* out = splits == 1 ? p.out : parts;
  return cublasLtMatmul(library_, problem.operation, &one, p.w, problem.w, p.x, problem.x, &zero,
                        out, problem.out, out, problem.out, choice, workspace, workspace_size,
                        stream);
}

cudaError_t gemm::run_one(const algorithm& with, const product& p, uint32_t splits, void* scratch,
                          size_t scratch_size, cudaStream_t stream, split_tickets tickets) {
  const auto reserved = parts_bytes(p.rows, p.outputs, splits);
  if (scratch_size < reserved) return cudaErrorInvalidValue;
  auto* parts = static_cast<float*>(scratch);
  if (!with.library) return launch_mma(with.variant, p, splits, parts, tickets, stream);
  const auto status =
      library_product(&with.choice, p, splits, parts, static_cast<std::byte*>(scratch) + reserved,
                      scratch_size - reserved, stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE
               ? cudaErrorNotSupported
               : cudaErrorLaunchFailure;
  return splits == 1
             ? cudaSuccess
             : launch_sum_parts(parts, splits, p.rows, p.outputs, p.out, p.out_stride, stream);
}

cudaError_t gemm::run(const void* x, uint32_t rows, std::span<const gemm_part> parts, void* scratch,
                      size_t scratch_size, cudaStream_t stream, split_tickets tickets) {
  for (const auto& part : parts) {
    const auto& w = part.weight;
    const auto* plan = plan_of({w.type, w.outputs, w.inputs});
    if (plan == nullptr && fixed_ != arithmetic::own) return cudaErrorInvalidValue;
    const auto splits = plan != nullptr ? plan->splits : splits_of(w.outputs, w.inputs);
    const auto most = plan != nullptr ? plan->rows_max : rows_max_of(w.outputs);
    for (uint32_t first = 0; first < rows; first += most) {
      const auto count = std::min(most, rows - first);
      product p{w.type,
                count,
                w.outputs,
                w.inputs,
                w.data,
                static_cast<const std::byte*>(x) + size_t{first} * w.inputs * 2,
                part.out + size_t{first} * part.out_stride,
                part.out_stride};
      algorithm with{.variant = default_mma_variant(count, w.outputs, shared_most_)};
      if (plan != nullptr) {
        auto at = std::lower_bound(row_classes.begin(), row_classes.end(), count);
        const auto& best = plan->classes[static_cast<size_t>(at - row_classes.begin())].best;
        if (!best.library || library_can(p, splits))
          with = best;
        else if (fixed_ != arithmetic::own)
          return cudaErrorMisalignedAddress;
      }
      if (auto error = run_one(with, p, splits, scratch, scratch_size, stream, tickets);
          error != cudaSuccess)
        return error;
    }
  }
  return cudaSuccess;
}

std::vector<algorithm> gemm::offers(const product& p, uint32_t splits, bool any_reduction,
                                    int most) {
  std::vector<algorithm> result;
  if (!library_can(p, splits)) return result;
  library_problem problem{p, splits};
  cublasLtMatmulPreference_t wanted{};
  if (problem.status != CUBLAS_STATUS_SUCCESS
      || cublasLtMatmulPreferenceCreate(&wanted) != CUBLAS_STATUS_SUCCESS)
    return result;
  cublasLtMatmulPreferenceSetAttribute(wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &library_workspace, sizeof library_workspace);
  const uint32_t reductions =
      any_reduction ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_NONE;
  cublasLtMatmulPreferenceSetAttribute(wanted, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                       &reductions, sizeof reductions);
  // Pieces of a longer call begin at any row.
  for (auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(wanted, operand, &library_alignment,
                                         sizeof library_alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  if (cublasLtMatmulAlgoGetHeuristic(library_, problem.operation, problem.w, problem.x, problem.out,
                                     problem.out, wanted, most, found.data(), &count)
      != CUBLAS_STATUS_SUCCESS)
    count = 0;
  for (int i = 0; i < count; ++i)
    if (found[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      result.push_back({.library = true, .choice = found[static_cast<size_t>(i)].algo});
  cublasLtMatmulPreferenceDestroy(wanted);
  return result;
}

} // namespace lamella::gpu::cuda
