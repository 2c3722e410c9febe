/// The kernel set of CUDA devices.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu::cuda {

/// One table for all devices: its functions put kernels into queue::current().
///
/// Weights are dense 16-bit rows [N, K]; activations are fp32 between operators and 16-bit inside
/// matmuls. Bits are promised within one device class (decision 29): numbers equal those of
/// another set only within the tolerances of the tests.
const operators& cuda_operators();

} // namespace lamella::gpu::cuda
