/// What the tests of CUDA kernels share: memory of the device, and whether there is one.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lamella::gpu::cuda::test {

/// True if there is a device; else says so once per test.
inline bool device_there() {
  int count = 0;
  auto error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return true;
  MESSAGE("skipped: no CUDA device (" << std::string{cudaGetErrorString(error)} << ")");
  return false;
}

inline void check(cudaError_t error) {
  REQUIRE_MESSAGE(error == cudaSuccess, std::string{cudaGetErrorString(error)});
}

/// A fresh seed for each run, printed; LAMELLA_SEED repeats a run.
inline uint64_t fresh_seed(const char* name) {
  const auto* given = std::getenv("LAMELLA_SEED");
  const auto seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : uint64_t{std::random_device{}()};
  MESSAGE(std::string{name} << ": seed " << seed);
  return seed;
}

/// Bytes on the device, all ones at first: NaN in every type of float.
class device_bytes {
public:
  explicit device_bytes(size_t size) : size_{size} {
    check(cudaMalloc(&data_, size + 1));
    check(cudaMemset(data_, 0xff, size));
  }
  template <class T>
  explicit device_bytes(const std::vector<T>& content) : device_bytes{content.size() * sizeof(T)} {
    upload(content);
  }
  ~device_bytes() { cudaFree(data_); }
  device_bytes(const device_bytes&) = delete;
  device_bytes& operator=(const device_bytes&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  template <class T> void upload(const std::vector<T>& content) {
    REQUIRE(content.size() * sizeof(T) <= size_);
    check(cudaMemcpy(data_, content.data(), content.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<std::byte> download() const {
    std::vector<std::byte> result(size_);
    check(cudaMemcpy(result.data(), data_, size_, cudaMemcpyDeviceToHost));
    return result;
  }

private:
  void* data_ = nullptr;
  size_t size_;
};

} // namespace lamella::gpu::cuda::test
