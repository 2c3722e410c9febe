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

/// Rows of K or V whose elements fill vectors: those of the cache where it is `exact`, else copies
/// with zeros behind them.
template <bool exact> struct whole_rows {
  const std::byte* const* rows;
  size_t offset;

  /// `room`: of bytes(shape). `copies`: where the copies are.
  whole_rows(const attention_shape& shape, const std::byte* const* from, size_t at, uint32_t count,
             std::byte* room, const std::byte** copies)
      : rows{from}, offset{at} {
    if constexpr (!exact) {
      const size_t filled = size_t{shape.dim} * 2, whole = size_t{shape.padded_dim} * 2;
      for (uint32_t i = 0; i < count; ++i, room += whole) {
        __builtin_memcpy(room, from[i] + at, filled);
        __builtin_memset(room + filled, 0, whole - filled);
        copies[i] = room;
      }
      rows = copies, offset = 0;
    }
  }
  static size_t bytes(const attention_shape& shape) {
    return exact ? 0 : size_t{chunk_positions} * shape.padded_dim * 2;
  }
};

} // namespace
} // namespace lamella::gpu
