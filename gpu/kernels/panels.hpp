/// The packed form of weights in the portable, avx2 and avx512 sets.
///
/// A panel is 16 outputs; the last one is padded with zeros. Panels follow each other.
///   plain types  [K][16] elements
///   quantised    groups of blocks of 32 elements: a header with scales, then the codes
///
/// Codes of b bits are unsigned and lie in planes: first their low 4 bits (of 2 and 3 bits the low
/// 2, of 8 all), then the others. A plane of w bits is w vectors [16][4] of a byte: byte (n, i) of
/// vector v holds, from its lowest bits up, those of elements 4 * (8 / w * v) + i,
/// 4 * (8 / w * v + 1) + i, ... of output n. So four consecutive elements of 16 outputs are one
/// 64-byte vector, which is what one multiply-and-add of bytes takes.
///
/// A header is, where blocks of the file have 32 elements, [16] f16 d and, over a minimum, [16] f16
/// m for each block of the group, which has one or two of them to fill 64 bytes. Of super-blocks it
/// is [16] f16 d, [16] f16 m, and for each of 8 blocks integers of 16 outputs, a byte each: [16]
/// or, of 16 elements, [2][16] scales, then as many minimums. Where both have 4 bits (q2_k) they
/// share a byte, the scale in its low nibble. Scales lie between the codes so that a product reads
/// memory strictly in order.
///
/// d and the integer scales stay apart, as in the file. Their product is exact in fp32, but no
/// half: it has 17 bits and may lie below a half's range; and fp32 products would cost 1 to 2 bits
/// a weight. So a matrix has the bits per weight of the file, and up to 3/16 more where it has
/// super-blocks: 2.625, 3.625, 4.625, 5.625, 6.625 for q2_k to q6_k, 4.375 for iq4_xs.
#pragma once

#include "gpu/kernels/operators.hpp"
#include "model/quantised_block.hpp"

namespace lamella::gpu {
// Internal linkage: this is compiled into sets of different instruction-set flags (see half.hpp).
namespace {

constexpr uint32_t panel_outputs = 16;

constexpr bool is_plain(model::tensor_type type) { return model::block_elements(type) == 1; }

constexpr uint32_t panel_count(uint32_t outputs) {
  return (outputs + panel_outputs - 1) / panel_outputs;
}

/// How the blocks of a quantised type are packed.
struct packed_form {
  uint32_t code_bits = 0; ///< 2 to 6, or 8
  uint32_t scales = 0;    ///< of a block of 32 and an output: 1, or 2 for 16 elements each
  bool has_minimum = false;
  bool super_blocks = false; ///< scales are integers, with halves for 8 blocks
  bool has_levels = false;   ///< codes choose a level (iq4); otherwise zero_code has level 0
  uint32_t zero_code = 0;

  constexpr uint32_t low_bits() const { return code_bits <= 3 ? 2 : code_bits == 8 ? 8 : 4; }
  constexpr uint32_t high_bits() const { return code_bits - low_bits(); }
  /// What an operand of a product of bytes takes: levels are bytes.
  constexpr uint32_t operand_bits() const { return has_levels ? 8 : code_bits; }
  /// The operand that stands for 0, where operands are unsigned.
  constexpr int32_t zero() const { return has_levels ? 128 : static_cast<int32_t>(zero_code); }

  constexpr size_t code_bytes() const { return size_t{64} * code_bits; } ///< of a block
  constexpr bool shares_bytes() const { return super_blocks && has_minimum && scales == 2; }
  constexpr size_t scale_bytes() const { ///< of a block
    const size_t numbers = scales * (has_minimum && !shares_bytes() ? 2 : 1) * panel_outputs;
    return super_blocks ? numbers : 2 * numbers;
  }
  constexpr uint32_t group_blocks() const {
    return super_blocks ? 8 : static_cast<uint32_t>(64 / scale_bytes());
  }
  constexpr size_t header_bytes() const {
    return (super_blocks ? 64 : 0) + group_blocks() * scale_bytes();
  }
  constexpr size_t group_bytes() const { return header_bytes() + group_blocks() * code_bytes(); }
  /// Where the scales of a block begin in its group, and where its codes do.
  constexpr size_t scale_offset(uint32_t place) const {
    return (super_blocks ? 64 : 0) + place * scale_bytes();
  }
  constexpr size_t code_offset(uint32_t place) const {
    return header_bytes() + place * code_bytes();
  }
};

constexpr packed_form form_of(model::tensor_type type) {
  packed_form form;
  model::with_quantised(type, [&](auto known) {
    using block = model::quantised_block<decltype(known)::value>;
    form.code_bits = block::code_bits;
    form.scales = 32 / block::scale_elements;
    form.has_minimum = block::has_minimum;
    form.super_blocks = model::block_elements(type) != 32;
    form.has_levels = block::has_levels;
    if constexpr (!block::has_levels) form.zero_code = block::zero_code;
  });
  return form;
}

constexpr size_t panel_bytes(model::tensor_type type, uint32_t inputs) {
  if (is_plain(type))
    return (size_t{inputs} * panel_outputs * model::block_bytes(type) + 63) / 64 * 64;
  const auto form = form_of(type);
  return (inputs / 32 + form.group_blocks() - 1) / form.group_blocks() * form.group_bytes();
}

} // namespace

size_t panels_packed_bytes(model::tensor_type type, uint32_t outputs, uint32_t inputs);
void panels_pack(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers);
void panels_embed(const embed_args& args, kernel_context context);

} // namespace lamella::gpu
