/// Threads and memory of a benchmark of kernels.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::cli {

struct bench_machine {
  explicit bench_machine(unsigned threads) : workers{threads} {}
  gpu::kernel_context context() { return {workers, scratch}; }

  team workers;
  arena scratch, data;
};

} // namespace lamella::cli
