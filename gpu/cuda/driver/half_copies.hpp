/// 16-bit copies of activations of a work, already rounded for the next matmul.
#pragma once

#include "base/arena.hpp"
#include "gpu/cuda/numbers/dense.hpp"

#include <map>

namespace lamella::gpu::cuda {

/// 16-bit copies of fp32 buffers, written by the kernel that writes the buffer, with the same
/// rounding as a kernel of their own would do it. Of one work: they lie in its workspace. Whoever
/// writes a buffer says so, here or with forget().
class half_copies {
public:
  /// Room for the copy of a whole buffer of `count` elements that is written now: a part of
  /// `written` elements, together with others that do not overlap it. A copy is whole when its
  /// parts are.
  uint16_t* write(const float* buffer, size_t count, size_t written, dense_type type,
                  arena& workspace);

  /// The buffer was written without a copy.
  void forget(const float* buffer) { copies_.erase(buffer); }

  /// The copy, if it is complete, of this length and type; else null.
  const uint16_t* of(const float* buffer, size_t count, dense_type type) const;

private:
  struct copy {
    uint16_t* data;
    size_t count, written;
    dense_type type;
  };
  std::map<const float*, copy> copies_;
  std::map<const float*, std::pair<uint16_t*, size_t>> rooms_; ///< and how many elements fit
};

} // namespace lamella::gpu::cuda
