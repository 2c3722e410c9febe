#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* avx512_operators() { return nullptr; }

} // namespace lamella::gpu
