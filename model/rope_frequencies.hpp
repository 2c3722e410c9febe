/// How fast the pairs of a head's elements are rotated.
#pragma once

#include <cstdint>
#include <vector>

namespace lamella::model {

class checkpoint;

/// Radians per position of each rotated pair: a geometric series from `rope.freq_base`, and what
/// the file says about longer contexts (`rope.scaling.*`, the divisors in rope_freqs.weight). A
/// head may rotate in part. Throws file_error naming the field.
std::vector<double> read_rope_frequencies(const checkpoint& file, uint32_t head_dim);

} // namespace lamella::model
