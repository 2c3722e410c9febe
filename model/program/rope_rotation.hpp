/// How fast the pairs of a head's elements are rotated, and what they are multiplied by.
#pragma once

#include <cstdint>
#include <vector>

namespace lamella::model {

class checkpoint;

struct rope_rotation {
  std::vector<double> frequencies; ///< radians per position, one per rotated pair
  float magnitude = 1;             ///< of what was rotated: less or more attention, if not 1
};

/// A geometric series from `rope.freq_base`, and what the file says about contexts that are longer
/// than those of the first training: linear scaling, YaRN, LLaMA-3's divisors (rope_freqs.weight),
/// or divisors for contexts up to the original one and beyond (rope_factors_short.weight and
/// rope_factors_long.weight); of these, `context_tokens` says which. A head may rotate in part.
/// Throws file_error naming the field.
rope_rotation read_rope_rotation(const checkpoint& file, uint32_t head_dim,
                                 uint32_t context_tokens);

} // namespace lamella::model
