/// The packed form of weights in the portable, avx2 and avx512 sets.
///
/// A panel is 16 outputs; the last one is padded with zeros. Panels follow each other.
///   plain types   [K][16] elements
///   quantised     groups of blocks: 64 bytes of scales, then the values of the blocks
///     scales      q4_1, one block a group: [16] f16 d, [16] f16 m; others, two blocks: [2][16] f16
///     d 4 bits      values of a block [4][16][4] bytes; byte (j, n, i) holds element 8 j + i of
///     output n
///                 in its low nibble and element 8 j + 4 + i in its high one
///     8 bits      values of a block [8][16][4] bytes, raised by 128 to be unsigned
/// Four consecutive elements of 16 outputs are one 64-byte vector: what one multiply-and-add of
/// bytes takes. Scales lie between the values so that a product reads memory strictly in order. The
/// matrix has the bits per weight of the file.
#pragma once

#include "gpu/kernels/operators.hpp"

namespace lamella::gpu {

constexpr uint32_t panel_outputs = 16;

constexpr bool is_plain(model::tensor_type type) { return model::block_elements(type) == 1; }
constexpr bool has_nibbles(model::tensor_type type) {
  return type == model::tensor_type::q4_0 || type == model::tensor_type::q4_1;
}

constexpr uint32_t panel_count(uint32_t outputs) {
  return (outputs + panel_outputs - 1) / panel_outputs;
}

/// Bytes of the values of one block of a panel.
constexpr size_t block_value_bytes(model::tensor_type type) {
  return has_nibbles(type) ? 256 : 512;
}

/// Blocks that share 64 bytes of scales.
constexpr uint32_t group_blocks(model::tensor_type type) {
  return type == model::tensor_type::q4_1 ? 1 : 2;
}

constexpr size_t group_bytes(model::tensor_type type) {
  return 64 + group_blocks(type) * block_value_bytes(type);
}

/// Where the values and the scales of a block begin in a panel.
constexpr size_t value_offset(model::tensor_type type, uint32_t block) {
  return block / group_blocks(type) * group_bytes(type) + 64
         + block % group_blocks(type) * block_value_bytes(type);
}
constexpr size_t scale_offset(model::tensor_type type, uint32_t block) {
  return block / group_blocks(type) * group_bytes(type) + block % group_blocks(type) * 32;
}

constexpr size_t panel_bytes(model::tensor_type type, uint32_t inputs) {
  if (is_plain(type))
    return (size_t{inputs} * panel_outputs * model::block_bytes(type) + 63) / 64 * 64;
  return (inputs / 32 + group_blocks(type) - 1) / group_blocks(type) * group_bytes(type);
}

size_t panels_packed_bytes(model::tensor_type type, uint32_t outputs, uint32_t inputs);
void panels_pack(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers);
void panels_embed(const embed_args& args, kernel_context context);

} // namespace lamella::gpu
