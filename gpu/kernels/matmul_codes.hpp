/// From packed codes and scales to what the tiles of a product take. Included after `lanes`.
#pragma once

#include "gpu/kernels/panels.hpp"

namespace lamella::gpu {
namespace {

/// Asks for weights that a later group of panels needs. They wait in the second level of the cache:
/// a group is larger than the first level, and asking there takes what this group's own loads need.
inline void fetch_line(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

/// The operands of group g of a block, whose codes begin at `codes`: four elements of 16 outputs.
template <packed_form form, int g>
[[gnu::always_inline]] inline lanes::values load_operands(const std::byte* codes) {
  constexpr int low = form.low_bits(), high = form.high_bits();
  if constexpr (low == 8) {
    return lanes::operands_of_bytes(lanes::load_codes(codes + g * 64));
  } else {
    constexpr int groups = 8 / low; // in a vector
    auto w = lanes::take_bits<g % groups * low, (1 << low) - 1>(
        lanes::load_codes(codes + g / groups * 64));
    if constexpr (high != 0) {
      constexpr int others = 8 / high;
      w = lanes::put_bits<g % others * high - low, ((1 << high) - 1) << low>(
          w, lanes::load_codes(codes + (low + g / others) * 64));
    }
    if constexpr (form.has_levels) w = lanes::operands_of_levels(w);
    return w;
  }
}

/// What operands of the h-th scale of a block are multiplied with.
template <packed_form form, int h>
[[gnu::always_inline]] inline lanes::vec load_scale(const std::byte* group,
                                                    const std::byte* scales) {
  if constexpr (!form.super_blocks) return lanes::load_f16(scales);
  const auto* integers = scales + h * panel_outputs;
  return lanes::mul(form.shares_bytes() ? lanes::load_low_u4(integers) : lanes::load_i8(integers),
                    lanes::load_f16(group));
}

/// What is added for each of their elements, where form.has_minimum.
template <packed_form form, int h>
[[gnu::always_inline]] inline lanes::vec load_minimum(const std::byte* group,
                                                      const std::byte* scales) {
  if constexpr (!form.super_blocks) return lanes::load_f16(scales + 32);
  const auto* integers = scales + h * panel_outputs;
  return lanes::mul(form.shares_bytes() ? lanes::load_high_u4(integers)
                                        : lanes::load_i8(integers + form.scales * panel_outputs),
                    lanes::load_f16(group + 32));
}

/// Asks for the codes of a block of later panels and for a line of their header, so that with all
/// blocks of a group all of it is asked for.
template <packed_form form, int panels>
[[gnu::always_inline]] inline void fetch_block(const std::byte* group, uint32_t place,
                                               size_t panel_stride) {
  unroll<panels>(LAMELLA_UNROLLED(p) {
    const auto* later = group + p * panel_stride;
    if (place * 64 < form.header_bytes()) fetch_line(later + place * 64);
    for (size_t at = 0; at < form.code_bytes(); at += 64)
      fetch_line(later + form.code_offset(place) + at);
  });
}

} // namespace
} // namespace lamella::gpu
