/// The rotational staggered pipeline of n batches over R model replicas, n - 1 in the paper (L-M17
/// to L-M21; Lamina 4.3).
#pragma once

#include <cassert>
#include <cstdint>

namespace lamella::scheduler {

/// Slice k of batch j runs on replica (j + k) mod R, so that replicas that started one after the
/// other serve different batches at any time, and the attention shards the rest. k counts on across
/// iterations: starting over would make batches collide.
class rotation {
public:
  explicit constexpr rotation(uint32_t replicas) : replicas_{replicas} { assert(replicas >= 1); }

  constexpr uint32_t replicas() const { return replicas_; }

  constexpr uint32_t replica_of(uint32_t batch, uint64_t k) const {
    return static_cast<uint32_t>((batch + k % replicas_) % replicas_);
  }

  /// The replica that comes after this one: the context of a batch goes there (L-M21).
  constexpr uint32_t next_of(uint32_t replica) const { return (replica + 1) % replicas_; }

private:
  uint32_t replicas_;
};

/// k of a slice of an iteration, for a model of `layers` layers. The last slice, which samples,
/// and the first one of the next iteration have the same k: the token stays on its replica.
constexpr uint64_t slice_count(uint64_t iteration, uint32_t slice, uint32_t layers) {
  return iteration * layers + slice;
}

// With one replica nothing ever moves.
static_assert(rotation{1}.replica_of(1, 7) == 0);
static_assert(rotation{3}.replica_of(3, UINT64_MAX) == (3 + UINT64_MAX % 3) % 3);
static_assert(slice_count(4, 30, 30) == slice_count(5, 0, 30));

/// Which replica runs which slice: rotating, or batch j always on replica j mod R (V-M06).
enum class pipeline_kind : uint8_t { fixed, rotational };

} // namespace lamella::scheduler
