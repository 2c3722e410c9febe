/// The rotational staggered pipeline of n batches over n - 1 model replicas (L-M17 to L-M21;
/// Lamina 4.3).
#pragma once

#include <cassert>
#include <cstdint>

namespace lamella::scheduler {

/// Slice k of batch j runs on replica (j + k) mod (n - 1), so at any time each replica serves one
/// batch and the attention shards serve the remaining one. k counts on across iterations; starting
/// over would make batches collide.
class rotation {
public:
  explicit constexpr rotation(uint32_t batches) : batches_{batches} { assert(batches >= 2); }

  constexpr uint32_t replicas() const { return batches_ - 1; }

  constexpr uint32_t replica_of(uint32_t batch, uint64_t slice) const {
    assert(batch < batches_);
    return static_cast<uint32_t>((batch + slice % replicas()) % replicas());
  }

private:
  uint32_t batches_;
};

// With two batches there is one replica and nothing ever moves.
static_assert(rotation{2}.replica_of(1, 7) == 0);
static_assert(rotation{4}.replica_of(3, UINT64_MAX) == (3 + UINT64_MAX % 3) % 3);

/// Which replica runs which slice: rotating, or batch j always on replica j mod r (V-M06).
enum class pipeline_kind : uint8_t { fixed, rotational };

} // namespace lamella::scheduler
