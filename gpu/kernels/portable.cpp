// Compiled with the flags of the architecture's oldest CPU.
#include "gpu/kernels/lanes_portable.hpp"

#include "gpu/kernels/table.hpp"

namespace lamella::gpu {

const operators* portable_operators() {
  static constexpr operators table = make_table("portable");
  return &table;
}

} // namespace lamella::gpu
