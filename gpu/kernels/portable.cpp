#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* portable_operators() { return nullptr; }

} // namespace lamella::gpu
