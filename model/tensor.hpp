/// Element types of stored tensors, and views of them in a mapped file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lamella::model {

/// How the elements of a tensor are stored. Quantised types store blocks of consecutive elements
/// along the innermost dimension: codes of a few bits, and what they are multiplied with. How many
/// elements a block has and where its bits lie is in model/quantised_block.hpp.
enum class tensor_type : uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs
};

/// What a tensor_type is called, and how many bytes its blocks have.
struct tensor_type_facts {
  tensor_type type;
  std::string_view name;
  uint32_t gguf_number;    ///< in the tables of GGUF files
  uint32_t block_elements; ///< 1: a plain type
  uint32_t block_bytes;
};

/// All types, in the order of their values.
inline constexpr std::array<tensor_type_facts, 15> tensor_types{{
    {tensor_type::f32, "f32", 0, 1, 4},
    {tensor_type::f16, "f16", 1, 1, 2},
    {tensor_type::bf16, "bf16", 30, 1, 2},
    {tensor_type::q8_0, "q8_0", 8, 32, 34},
    {tensor_type::q4_0, "q4_0", 2, 32, 18},
    {tensor_type::q4_1, "q4_1", 3, 32, 20},
    {tensor_type::q5_0, "q5_0", 6, 32, 22},
    {tensor_type::q5_1, "q5_1", 7, 32, 24},
    {tensor_type::q2_k, "q2_k", 10, 256, 84},
    {tensor_type::q3_k, "q3_k", 11, 256, 110},
    {tensor_type::q4_k, "q4_k", 12, 256, 144},
    {tensor_type::q5_k, "q5_k", 13, 256, 176},
    {tensor_type::q6_k, "q6_k", 14, 256, 210},
    {tensor_type::iq4_nl, "iq4_nl", 20, 32, 18},
    {tensor_type::iq4_xs, "iq4_xs", 23, 256, 136},
}};

constexpr const tensor_type_facts& facts_of(tensor_type type) {
  return tensor_types[static_cast<size_t>(type)];
}

/// Elements per block: 1 for plain types.
constexpr uint32_t block_elements(tensor_type type) { return facts_of(type).block_elements; }

/// Bytes per block.
constexpr uint32_t block_bytes(tensor_type type) { return facts_of(type).block_bytes; }

/// Bytes of `elements` consecutive elements; `elements` must be a multiple of block_elements(type).
constexpr uint64_t row_bytes(tensor_type type, uint64_t elements) {
  return elements / block_elements(type) * block_bytes(type);
}

constexpr std::string_view to_string(tensor_type type) { return facts_of(type).name; }

/// A tensor as it lies in a file: rank 1 (`inner` elements, rows = 1) or 2 ([rows, inner],
/// row-major). Its rows, or the elements of a vector, may be meant in another order: see
/// place_of().
struct tensor_view {
  std::string name;
  tensor_type type = tensor_type::f32;
  uint64_t inner = 0;
  uint64_t rows = 1;
  std::span<const std::byte> data; ///< rows * row_bytes(type, inner) bytes; any alignment of `type`
  /// Heads whose elements that are rotated together lie half a head apart in the file, but are
  /// meant to be neighbours; 0: the order of the file is the one that is meant.
  uint32_t halved_heads = 0;

  /// Where row `i`, or element `i` of a vector, lies in the file.
  uint64_t place_of(uint64_t i) const {
    if (halved_heads == 0) return i;
    const uint64_t head = (rows == 1 ? inner : rows) / halved_heads;
    const uint64_t within = i % head;
    return i - within + within / 2 + within % 2 * (head / 2);
  }
};

} // namespace lamella::model
