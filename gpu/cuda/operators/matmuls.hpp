/// The matrix matmuls of one device, with what has been measured about them.
#pragma once

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/gemm/gemm.hpp"

#include <mutex>
#include <optional>
#include <set>
#include <span>

namespace lamella::gpu::cuda {

/// Two weights of one shape as one matrix of twice the outputs, if they lie behind each other in
/// memory and the product with it has the bytes of the two products. For a few rows one launch
/// reads weights faster than two.
std::optional<dense_matrix> side_by_side(const dense_matrix& first, const dense_matrix& second);

/// Products with fp32 activations, rounded once per call for all parts. One per device and process.
class matmuls {
public:
  /// The matmuls of a device, opened when first asked for. Throws std::runtime_error when the
  /// library cannot be opened. Thread-safe.
  static matmuls& of(int device);

  /// Measures the algorithms for the shape of a weight, once per shape: some 0.2 s, and it waits
  /// for the device. Called when weights are loaded, because nothing may wait for a device whose
  /// streams wait for each other. Thread-safe.
  void prepare(const dense_matrix& weight);

  /// Shapes for which there was no memory to measure: they take the own kernels' defaults, with the
  /// same bytes. Thread-safe.
  uint32_t untuned() const;

  /// Seconds spent in prepare() so far. Thread-safe.
  double seconds_preparing() const;

  /// out = x * weight^T for parts of one input width. Shapes that were not prepared take the own
  /// kernels' defaults, with the same bytes. Used by the driver thread.
  void run(const float* x, uint32_t rows, std::span<const gemm_part> parts, queue& on);

  /// The same; x is rounded already, to the type of the weights.
  void run(const uint16_t* x, uint32_t rows, std::span<const gemm_part> parts, queue& on);

private:
  matmuls();
  void tune(const dense_matrix& weight);
  void tune_twice(const dense_matrix& weight);

  mutable std::mutex mutex_; ///< of the plans: read by launches, written while weights are loaded
  gemm gemm_;
  std::set<weight_shape> prepared_;
  dense_matrix last_prepared_{};
  uint32_t untuned_ = 0;
  double seconds_preparing_ = 0;
};

} // namespace lamella::gpu::cuda
