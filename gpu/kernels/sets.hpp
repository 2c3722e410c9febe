/// The kernel sets of this build. Each returns null where its architecture was not compiled.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu {

const operators* portable_operators();
const operators* avx2_operators();
const operators* avx512_operators();

/// The one sampler, shared by all sets (sample.cpp).
void sample_rows(const sample_args& args, kernel_context context);

} // namespace lamella::gpu
