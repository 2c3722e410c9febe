// The avx2 set with products by AVX-VNNI, which processors without AVX-512 have that Intel sells
// for clients. The sums of bytes are exact in both, so this has the bytes of that set, and its
// name. Compiled with AVX-VNNI flags: everything this file includes of ours has internal linkage,
// so that the linker cannot keep such a copy of a function for the whole program.
#if defined(__AVXVNNI__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own headers leave "undefined" vectors uninitialised, and it warns where they are
// inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "gpu/kernels/lanes_avx2.hpp"

#include "gpu/kernels/matmul.hpp"
#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* avxvnni_operators() {
  static const operators table = [] {
    auto set = *avx2_operators();
    set.matmul = matmul;
    return set;
  }();
  return &table;
}

} // namespace lamella::gpu

#else

#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* avxvnni_operators() { return nullptr; }

} // namespace lamella::gpu

#endif
