// The avx512 set with products on tiles. Compiled with AVX-512 flags: everything this file includes
// of ours has internal linkage, so that the linker cannot keep an AVX-512 copy of a function for
// the whole program. The tile instructions are in asm statements, which no other file has.
#if defined(__AVX512VNNI__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own headers leave "undefined" vectors uninitialised, and it warns where they are
// inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "gpu/kernels/lanes_avx512.hpp"
#include "gpu/kernels/tile_unit_amx.hpp"

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tile_matmul.hpp"

namespace lamella::gpu {

const operators* amx_operators() { return operators_with_tiles<avx512_operators>("amx"); }

} // namespace lamella::gpu

#else

#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* amx_operators() { return nullptr; }

} // namespace lamella::gpu

#endif
