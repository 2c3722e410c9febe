#include "tests/gpu/kernels/tile_twin.hpp"

#include "gpu/kernels/lanes_portable.hpp"
#include "tests/gpu/kernels/tile_unit_twin.hpp"

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tiles/table.hpp"

namespace lamella::gpu {

const operators* avx512_tile_twin(); // tile_twin_avx512.cpp

namespace test {

namespace {

bool has_avx512() { return find_operators("avx512", nullptr) != nullptr; }

} // namespace

const operators& tile_twin() {
  return has_avx512() ? *avx512_tile_twin()
                      : *operators_with_tiles<portable_operators>("portable-twin");
}

const operators& without_tiles() {
  return has_avx512() ? *avx512_operators() : *portable_operators();
}

const operators* find_set(std::string_view name, std::string* reason) {
  return name == "twin" ? &tile_twin() : find_operators(name, reason);
}

} // namespace test
} // namespace lamella::gpu
