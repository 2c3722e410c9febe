#include "gpu/kernels/panels.hpp"

#include "gpu/kernels/sets.hpp"

#include "gpu/kernels/half.hpp"

#include <algorithm>
#include <cstring>

namespace lamella::gpu {

namespace {

using model::tensor_type;

/// Byte of a panel's values that holds element k of output n, and whether in its high nibble.
struct value_place {
  size_t byte;
  bool high;
};

value_place place_of(tensor_type type, uint32_t k, uint32_t n) {
  auto block = k / 32, group = k % 32 / 4, i = k % 4;
  if (has_nibbles(type))
    return {value_offset(type, block) + group / 2 * 64 + n * 4 + i, group % 2 != 0};
  return {value_offset(type, block) + group * 64 + n * 4 + i, false};
}

void pack_plain(tensor_type type, const std::byte* row, uint32_t inputs, uint32_t n,
                std::byte* panel) {
  auto size = model::block_bytes(type);
  for (uint32_t k = 0; k < inputs; ++k)
    std::memcpy(panel + (size_t{k} * panel_outputs + n) * size, row + size_t{k} * size, size);
}

void pack_quantised(tensor_type type, const std::byte* row, uint32_t inputs, uint32_t n,
                    std::byte* panel) {
  auto header = type == tensor_type::q4_1 ? 4u : 2u;
  for (uint32_t b = 0; b < inputs / 32; ++b, row += model::block_bytes(type)) {
    auto* block_scales = panel + scale_offset(type, b) + size_t{n} * 2;
    std::memcpy(block_scales, row, 2);
    if (type == tensor_type::q4_1) std::memcpy(block_scales + 32, row + 2, 2);
    for (uint32_t i = 0; i < 32; ++i) {
      auto to = place_of(type, b * 32 + i, n);
      if (has_nibbles(type)) {
        auto nibble = i < 16 ? row[header + i] & std::byte{15} : row[header + i - 16] >> 4;
        panel[to.byte] |= to.high ? nibble << 4 : nibble;
      } else {
        panel[to.byte] = row[header + i] ^ std::byte{128};
      }
    }
  }
}

void unpack_row(const packed_matrix& table, uint32_t n, float* out) {
  auto type = table.type;
  const auto* panel = table.data + n / panel_outputs * panel_bytes(type, table.inputs);
  n %= panel_outputs;
  if (is_plain(type)) {
    for (uint32_t k = 0; k < table.inputs; ++k) {
      const auto* p = panel + (size_t{k} * panel_outputs + n) * model::block_bytes(type);
      out[k] = type == tensor_type::f32   ? load_as<float>(p)
               : type == tensor_type::f16 ? from_half(load_as<uint16_t>(p))
                                          : from_bf16(load_as<uint16_t>(p));
    }
    return;
  }
  for (uint32_t b = 0; b < table.inputs / 32; ++b) {
    const auto* scales = panel + scale_offset(type, b) + size_t{n} * 2;
    auto d = from_half(load_as<uint16_t>(scales));
    auto m = type == tensor_type::q4_1   ? from_half(load_as<uint16_t>(scales + 32))
             : type == tensor_type::q4_0 ? -8.0f * d
                                         : -128.0f * d;
    for (uint32_t i = 0; i < 32; ++i) {
      auto from = place_of(type, b * 32 + i, n);
      auto value = static_cast<unsigned>(panel[from.byte]);
      if (has_nibbles(type)) value = from.high ? value >> 4 : value & 15u;
      out[b * 32 + i] = d * static_cast<float>(value) + m;
    }
  }
}

} // namespace

size_t panels_packed_bytes(tensor_type type, uint32_t outputs, uint32_t inputs) {
  return panel_count(outputs) * panel_bytes(type, inputs);
}

void panels_pack(tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers) {
  workers.for_each(panel_count(outputs), [&](size_t p) {
    auto* panel = out + p * panel_bytes(type, inputs);
    std::memset(panel, 0, panel_bytes(type, inputs));
    auto first = static_cast<uint32_t>(p) * panel_outputs;
    for (uint32_t n = 0; n < std::min(panel_outputs, outputs - first); ++n) {
      const auto* row = rows + (first + n) * model::row_bytes(type, inputs);
      if (is_plain(type))
        pack_plain(type, row, inputs, n, panel);
      else
        pack_quantised(type, row, inputs, n, panel);
    }
  });
}

void panels_embed(const embed_args& args, kernel_context context) {
  constexpr size_t rows_per_item = 4;
  auto rows = args.tokens.size();
  context.workers.for_each((rows + rows_per_item - 1) / rows_per_item, [&](size_t item) {
    for (auto m = item * rows_per_item; m < std::min(rows, (item + 1) * rows_per_item); ++m)
      unpack_row(args.table, token_of(args, m), args.out + m * args.table.inputs);
  });
}

} // namespace lamella::gpu
