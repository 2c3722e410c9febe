// Compiled with AVX2 flags: everything this file includes of ours has internal linkage, so that
// the linker cannot keep an AVX2 copy of a function for the whole program.
#if defined(__AVX2__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own headers leave "undefined" vectors uninitialised, and it warns where they are
// inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "gpu/kernels/lanes_avx2.hpp"
#include "gpu/kernels/table.hpp"

namespace lamella::gpu {

const operators* avx2_operators() {
  static constexpr operators table = make_table("avx2");
  return &table;
}

} // namespace lamella::gpu

#else

#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* avx2_operators() { return nullptr; }

} // namespace lamella::gpu

#endif
