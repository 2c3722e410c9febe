/// CUDA errors as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

/// A call failed. Most CUDA errors are sticky: the device is to be treated as lost.
class cuda_error : public std::runtime_error {
public:
  cuda_error(cudaError_t code, const char* what)
      : std::runtime_error{std::string{what} + ": " + cudaGetErrorName(code) + ", "
                           + cudaGetErrorString(code)},
        code_{code} {}
  cudaError_t code() const { return code_; }

private:
  cudaError_t code_;
};

/// Throws cuda_error unless `code` is success.
inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw cuda_error{code, what};
}

} // namespace lamella::gpu::cuda
