/// The packed form of weights in the portable, avx2 and avx512 sets.
///
/// A panel is 16 outputs; the last one is padded with zeros. Panels follow each other.
///   plain types   [K][16] elements
///   quantised     values of all blocks, then scales of all blocks (padded to 64 bytes):
///     4 bits      values [K/32][4][16][4] bytes; byte (b, j, n, i) holds element 32 b + 8 j + i of
///                 output n in its low nibble and element 32 b + 8 j + 4 + i in its high one
///     8 bits      values [K/32][8][16][4] bytes, raised by 128 to be unsigned
///     scales      [K/32][16] f16 d; q4_1: [K/32][2][16], d then m
/// Four consecutive elements of 16 outputs are one 64-byte vector: what one multiply-and-add of
/// bytes takes. The matrix has the bits per weight of the file.
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

/// Bytes of the scales of one block of a panel.
constexpr size_t block_scale_bytes(model::tensor_type type) {
  return type == model::tensor_type::q4_1 ? 64 : 32;
}

/// Where the scales of a panel begin.
constexpr size_t panel_scale_offset(model::tensor_type type, uint32_t inputs) {
  return inputs / 32 * block_value_bytes(type);
}

constexpr size_t panel_bytes(model::tensor_type type, uint32_t inputs) {
  size_t bytes = is_plain(type)
                     ? size_t{inputs} * panel_outputs * model::block_bytes(type)
                     : panel_scale_offset(type, inputs) + inputs / 32 * block_scale_bytes(type);
  return (bytes + 63) / 64 * 64;
}

size_t panels_packed_bytes(model::tensor_type type, uint32_t outputs, uint32_t inputs);
void panels_pack(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers);
void panels_embed(const embed_args& args, kernel_context context);

} // namespace lamella::gpu
