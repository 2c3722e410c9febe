/// The set with tiles over a tile operation in plain C++, so that every machine tests all of it but
/// the instruction.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <string>
#include <string_view>

namespace lamella::gpu::test {

/// The twin of `amx` where the machine has AVX-512; elsewhere the same over the portable set.
const operators& tile_twin();

/// Its set without tiles.
const operators& without_tiles();

/// find_operators, which also knows `twin`.
const operators* find_set(std::string_view name, std::string* reason);

} // namespace lamella::gpu::test
