/// How the parity of an iteration is cut into frames: the same for the replica that sends it and
/// the shard that stores it (decision 23; reliability A6).
#pragma once

#include "gpu/runners/slice_turns.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lamella::gpu {

/// As many layers per frame as fit: parity is not needed layer by layer, and few frames cost few
/// wake-ups. The parity of a small iteration is one frame. Where replicas run the slices in turn,
/// each layer is a frame of its own: no replica has the K and V of two that follow each other.
class parity_frames {
public:
  /// Of an iteration of `layers` layers, for frames of at most `frame_bytes` bytes. `half`: bytes
  /// of K (and of V) of one layer.
  parity_frames(size_t frame_bytes, uint32_t layers, size_t half, slice_turns turns = {})
      : layers_{layers}, half_{half}, per_frame_{static_cast<uint32_t>(std::clamp<size_t>(
                                          frame_bytes / std::max<size_t>(1, 2 * half), 1,
                                          turns.rotate() ? 1 : layers))} {}

  size_t half() const { return half_; }
  uint32_t first_of(uint32_t layer) const { return layer / per_frame_ * per_frame_; }
  uint32_t last_of(uint32_t layer) const {
    return std::min(first_of(layer) + per_frame_, layers_) - 1;
  }
  bool ends_with(uint32_t layer) const { return layer == last_of(layer); }

  /// Of the frame that a layer is in, and where in it the layer lies.
  size_t bytes_of_frame(uint32_t layer) const {
    return size_t{last_of(layer) - first_of(layer) + 1} * 2 * half_;
  }
  size_t place(uint32_t layer) const { return size_t{layer - first_of(layer)} * 2 * half_; }

private:
  uint32_t layers_;
  size_t half_;
  uint32_t per_frame_;
};

/// Room for a frame in a link that carries rows of `row_bytes` bytes of a shard's K and V, at most
/// `rows` of them: of small iterations for many layers.
constexpr uint64_t parity_frame_bytes(uint64_t rows, uint64_t row_bytes) {
  constexpr uint64_t worth_a_wakeup = 256 << 10;
  return std::max(rows * row_bytes, worth_a_wakeup);
}

} // namespace lamella::gpu
