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

/// How the elements of a tensor are stored. Quantised types store blocks of 32 elements along the
/// innermost dimension:
///   q8_0  f16 d, 32 x int8         value = d * q
///   q4_0  f16 d, 16 bytes          value = d * (q - 8)
///   q4_1  f16 d, f16 m, 16 bytes   value = d * q + m
/// In 4-bit blocks byte i holds element i in its low and element i + 16 in its high nibble.
enum class tensor_type : uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1 };

/// Elements per block: 1 for plain types.
constexpr uint32_t block_elements(tensor_type type) {
  return type == tensor_type::q8_0 || type == tensor_type::q4_0 || type == tensor_type::q4_1 ? 32
                                                                                             : 1;
}

/// Bytes per block.
constexpr uint32_t block_bytes(tensor_type type) {
  constexpr std::array<uint32_t, 6> bytes{4, 2, 2, 34, 18, 20};
  return bytes[static_cast<size_t>(type)];
}

/// Bytes of `elements` consecutive elements; `elements` must be a multiple of block_elements(type).
constexpr uint64_t row_bytes(tensor_type type, uint64_t elements) {
  return elements / block_elements(type) * block_bytes(type);
}

constexpr std::string_view to_string(tensor_type type) {
  constexpr std::array<std::string_view, 6> names{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1"};
  return names[static_cast<size_t>(type)];
}

/// A tensor as it lies in a file: rank 1 (`inner` elements, rows = 1) or 2 ([rows, inner],
/// row-major).
struct tensor_view {
  std::string name;
  tensor_type type = tensor_type::f32;
  uint64_t inner = 0;
  uint64_t rows = 1;
  std::span<const std::byte> data; ///< rows * row_bytes(type, inner) bytes; any alignment of `type`
};

} // namespace lamella::model
