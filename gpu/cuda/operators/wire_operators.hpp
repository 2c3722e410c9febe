/// The operators around the wire on a CUDA device: rotation, to_wire and from_wire. What a frame
/// holds is rotated, rounded, laid out and posted by one kernel where that gives the same bytes.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu::cuda {

void rope(const rope_args& args, kernel_context context);
void to_wire(const to_wire_args& args, kernel_context context);
void from_wire(const from_wire_args& args, kernel_context context);
void parity_to_wire(const parity_to_wire_args& args, kernel_context context);

} // namespace lamella::gpu::cuda
