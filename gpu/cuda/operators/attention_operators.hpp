/// The attention steps of the operator table on a CUDA device: plans, memory and launches.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu::cuda {

const char* attention_unsupported(const attention_args& args);

/// Plans the iteration the spans belong to; the plan is kept until the work ends.
size_t attention_state_floats(const attention_args& args);

void attend_previous(const attention_args& args, kernel_context context);
void append_kv(const attention_args& args, kernel_context context);
void attend_new(const attention_args& args, kernel_context context);

} // namespace lamella::gpu::cuda
