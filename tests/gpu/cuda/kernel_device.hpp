/// What the tests of matmuls, row operators and sampling share: typed device memory, poisoned
/// before use, and seeds.
#pragma once

#include "tests/gpu/cuda/device_support.hpp"

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lamella::gpu::cuda::test {

/// Device memory of one test. Filled with ones unless given values: NaN in every float.
template <class T> class device_array {
public:
  explicit device_array(size_t count) : count_{count} {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T) + 16));
    poison();
  }
  explicit device_array(std::span<const T> values) : device_array(values.size()) {
    check(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  }
  explicit device_array(const std::vector<T>& values) : device_array(std::span<const T>{values}) {}
  ~device_array() { cudaFree(data_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  void poison() { check(cudaMemset(data_, 0xff, count_ * sizeof(T) + 16)); }
  T* get() { return data_; }
  size_t size() const { return count_; }

  /// Waits for the device. Also checks that nothing was written behind the end.
  std::vector<T> values() const {
    check(cudaDeviceSynchronize());
    std::vector<T> result(count_);
    unsigned char behind[16];
    check(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(behind, data_ + count_, sizeof behind, cudaMemcpyDeviceToHost));
    for (auto byte : behind) CHECK(byte == 0xff);
    return result;
  }

private:
  T* data_ = nullptr;
  size_t count_;
};

} // namespace lamella::gpu::cuda::test
