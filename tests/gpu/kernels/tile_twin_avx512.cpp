// Compiled with the flags of gpu/kernels/amx.cpp.
#if defined(__AVX512VNNI__)

#if defined(__GNUC__) && !defined(__clang__)
// As in gpu/kernels/avx512.cpp.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "gpu/kernels/lanes_avx512.hpp"
#include "tests/gpu/kernels/tile_unit_twin.hpp"

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tiles/table.hpp"

namespace lamella::gpu {

const operators* avx512_tile_twin() { return operators_with_tiles<avx512_operators>("amx-twin"); }

} // namespace lamella::gpu

#else

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu {

const operators* avx512_tile_twin() { return nullptr; }

} // namespace lamella::gpu

#endif
