#include "gpu/kernels/panels.hpp"

#include "gpu/kernels/sets.hpp"

#include "gpu/kernels/half.hpp"

#include <algorithm>
#include <cstring>

namespace lamella::gpu {

namespace {

using model::tensor_type;

/// A plane of the codes of a block: which of their bits, and where its vectors lie.
struct plane {
  uint32_t first, bits;
  size_t offset;
  constexpr uint32_t groups() const { return 8 / bits; } ///< of four elements, in a vector
  constexpr uint32_t mask() const { return ((1u << bits) - 1) * 0x01010101u; }
};

constexpr plane low_plane(packed_form form) { return {0, form.low_bits(), 0}; }
constexpr plane high_plane(packed_form form) {
  return {form.low_bits(), form.high_bits(), size_t{64} * form.low_bits()};
}

/// The codes of a block, as eight words of four; codes + n * 4 is output n of its first vector.
void put_plane(plane at, const uint32_t (&words)[8], std::byte* codes) {
  for (uint32_t v = 0; v < at.bits; ++v) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < at.groups(); ++i)
      word |= (words[v * at.groups() + i] >> at.first & at.mask()) << (at.bits * i);
    std::memcpy(codes + at.offset + v * 64, &word, sizeof word);
  }
}

void take_plane(plane at, const std::byte* codes, uint32_t (&words)[8]) {
  for (uint32_t v = 0; v < at.bits; ++v) {
    const auto word = load_as<uint32_t>(codes + at.offset + v * 64);
    for (uint32_t i = 0; i < at.groups(); ++i)
      words[v * at.groups() + i] |= (word >> (at.bits * i) & at.mask()) << at.first;
  }
}

void put_half(uint16_t half, std::byte* to) { std::memcpy(to, &half, sizeof half); }

/// Scales of the block at `place` of a group; `b` is the block of the file that has it.
template <tensor_type type>
void put_scales(const uint8_t* b, uint32_t place, uint32_t n, std::byte* group) {
  using block = model::quantised_block<type>;
  constexpr auto form = form_of(type);
  auto* scales = group + form.scale_offset(place);
  if constexpr (!form.super_blocks) {
    put_half(block::d(b), scales + n * 2);
    if constexpr (form.has_minimum) put_half(block::m(b), scales + 32 + n * 2);
  } else {
    if (place == 0) {
      put_half(block::d(b), group + n * 2);
      if constexpr (form.has_minimum) put_half(block::m(b), group + 32 + n * 2);
    }
    for (uint32_t h = 0; h < form.scales; ++h) {
      const auto s = place * form.scales + h;
      auto scale = block::scale(b, s);
      if constexpr (form.has_minimum) {
        const auto minimum = block::minimum(b, s);
        if constexpr (form.shares_bytes())
          scale |= minimum << 4;
        else
          scales[(form.scales + h) * panel_outputs + n] = static_cast<std::byte>(minimum);
      }
      scales[h * panel_outputs + n] = static_cast<std::byte>(scale);
    }
  }
}

/// The group that holds a block of 32 elements, and which block of it that is.
struct block_place {
  size_t group;
  uint32_t place;
};

constexpr block_place place_of(packed_form form, uint32_t block) {
  return {block / form.group_blocks() * form.group_bytes(), block % form.group_blocks()};
}

template <tensor_type type>
void pack_quantised(const std::byte* row, uint32_t inputs, uint32_t n, std::byte* panel) {
  using block = model::quantised_block<type>;
  constexpr auto form = form_of(type);
  constexpr auto elements = model::block_elements(type);
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  for (uint32_t k = 0; k < inputs; k += 32) {
    const auto* b = bytes + k / elements * model::block_bytes(type);
    const auto [group, place] = place_of(form, k / 32);
    put_scales<type>(b, place, n, panel + group);
    uint32_t words[8];
    for (uint32_t g = 0; g < 8; ++g) {
      words[g] = 0;
      for (uint32_t i = 0; i < 4; ++i)
        words[g] |= block::code(b, k % elements + 4 * g + i) << (8 * i);
    }
    auto* codes = panel + group + form.code_offset(place) + n * 4;
    put_plane(low_plane(form), words, codes);
    if constexpr (form.high_bits() != 0) put_plane(high_plane(form), words, codes);
  }
}

void pack_plain(tensor_type type, const std::byte* row, uint32_t inputs, uint32_t n,
                std::byte* panel) {
  auto size = model::block_bytes(type);
  for (uint32_t k = 0; k < inputs; ++k)
    std::memcpy(panel + (size_t{k} * panel_outputs + n) * size, row + size_t{k} * size, size);
}

void pack_row(tensor_type type, const std::byte* row, uint32_t inputs, uint32_t n,
              std::byte* panel) {
  const bool quantised = model::with_quantised(
      type, [&](auto known) { pack_quantised<decltype(known)::value>(row, inputs, n, panel); });
  if (!quantised) pack_plain(type, row, inputs, n, panel);
}

/// What the codes of `count` elements are multiplied with, and what is added.
struct scale_pair {
  float scale, minimum;
};

template <packed_form form>
scale_pair take_scales(const std::byte* group, uint32_t place, uint32_t h, uint32_t n) {
  const auto* scales = group + form.scale_offset(place);
  const auto half_at = [&](const std::byte* p) { return from_half(load_as<uint16_t>(p + n * 2)); };
  if constexpr (!form.super_blocks) {
    return {half_at(scales), form.has_minimum ? half_at(scales + 32) : 0.0f};
  } else {
    const auto integer = [&](uint32_t row) {
      return int32_t{load_as<int8_t>(scales + row * panel_outputs + n)};
    };
    auto scale = integer(h), minimum = 0;
    if constexpr (form.shares_bytes()) {
      minimum = scale >> 4 & 15;
      scale &= 15;
    } else if constexpr (form.has_minimum) {
      minimum = integer(form.scales + h);
    }
    return {half_at(group) * static_cast<float>(scale),
            form.has_minimum ? half_at(group + 32) * static_cast<float>(minimum) : 0.0f};
  }
}

template <tensor_type type>
void unpack_quantised(const std::byte* panel, uint32_t inputs, uint32_t n, float* out) {
  using block = model::quantised_block<type>;
  constexpr auto form = form_of(type);
  for (uint32_t k = 0; k < inputs; k += 32) {
    const auto [group, place] = place_of(form, k / 32);
    uint32_t words[8] = {};
    const auto* codes = panel + group + form.code_offset(place) + n * 4;
    take_plane(low_plane(form), codes, words);
    if constexpr (form.high_bits() != 0) take_plane(high_plane(form), codes, words);
    for (uint32_t h = 0; h < form.scales; ++h) {
      const auto [scale, minimum] = take_scales<form>(panel + group, place, h, n);
      for (uint32_t i = h * block::scale_elements; i < (h + 1) * block::scale_elements; ++i) {
        const auto level = block::level(words[i / 4] >> (i % 4 * 8) & 255u);
        out[k + i] = scale * static_cast<float>(level);
        if constexpr (form.has_minimum) out[k + i] += minimum;
      }
    }
  }
}

void unpack_row(const packed_matrix& table, uint32_t n, float* out) {
  auto type = table.type;
  const auto* panel = table.data + n / panel_outputs * panel_bytes(type, table.inputs);
  n %= panel_outputs;
  const bool quantised = model::with_quantised(type, [&](auto known) {
    unpack_quantised<decltype(known)::value>(panel, table.inputs, n, out);
  });
  if (quantised) return;
  for (uint32_t k = 0; k < table.inputs; ++k) {
    const auto* p = panel + (size_t{k} * panel_outputs + n) * model::block_bytes(type);
    out[k] = type == tensor_type::f32   ? load_as<float>(p)
             : type == tensor_type::f16 ? from_half(load_as<uint16_t>(p))
                                        : from_bf16(load_as<uint16_t>(p));
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
    for (uint32_t n = 0; n < std::min(panel_outputs, outputs - first); ++n)
      pack_row(type, rows + (first + n) * model::row_bytes(type, inputs), inputs, n, panel);
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
