#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* avx2_operators() { return nullptr; }

} // namespace lamella::gpu
