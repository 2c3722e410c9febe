/// What both kinds of attention on tiles share: memory of an item, and rows that are packed.
/// Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/tiles/attention.hpp"

namespace lamella::gpu {
namespace {

/// Memory of an item, taken piece by piece; sized by the same walk without memory.
class piece_taker {
public:
  explicit piece_taker(float* room) : next_{reinterpret_cast<std::byte*>(room)} {}

  std::byte* bytes(size_t count) {
    auto* piece = next_;
    count = (count + 63) / 64 * 64;
    taken_ += count;
    if (next_ != nullptr) next_ += count;
    return piece;
  }
  float* floats(size_t count) { return reinterpret_cast<float*>(bytes(count * 4)); }
  size_t taken_floats() const { return taken_ / 4; }

private:
  std::byte* next_;
  size_t taken_ = 0;
};

/// Rows of K or V whose elements fill vectors: those of the cache, or widened copies of them.
template <half_type type, int vectors, bool exact> struct whole_rows {
  static constexpr half_type kind = exact ? type : half_type::f32;
  static constexpr bool low = has_low(kind);
  static constexpr uint32_t most = chunk_positions;

  const std::byte* const* rows;
  size_t offset;
  uint32_t dim;

  /// `room`: of floats(shape).
  whole_rows(const attention_shape& shape, const std::byte* const* from, size_t at, uint32_t count,
             float* room, const std::byte** copies)
      : rows{from}, offset{at}, dim{shape.dim} {
    if constexpr (!exact) {
      for (uint32_t i = 0; i < count; ++i, room += shape.padded_dim) {
        widen(from[i] + at, shape.dim, type, room);
        for (auto j = shape.dim; j < shape.padded_dim; ++j) room[j] = 0;
        copies[i] = reinterpret_cast<const std::byte*>(room);
      }
      rows = copies, offset = 0, dim = shape.padded_dim;
    }
  }
  static size_t floats(const attention_shape& shape) {
    return exact ? 0 : size_t{most} * shape.padded_dim;
  }
};

/// Queries of fp32 as the rows of tiles.
inline void pack_queries(const attention_shape& shape, const float* q, uint32_t count,
                         std::byte* tiles) {
  const std::byte* rows[tile_queries];
  for (uint32_t i = 0; i < count; ++i)
    rows[i] = reinterpret_cast<const std::byte*>(q + size_t{i} * shape.padded_dim);
  pack_rows<half_type::f32, 0>(rows, 0, count, shape.padded_dim, tiles);
}

} // namespace
} // namespace lamella::gpu
