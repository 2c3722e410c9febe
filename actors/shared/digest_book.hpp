/// Digests of the K and V of each position, as of their last read (reliability A4, D1: I9).
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace lamella::actors {

/// Committed K and V of a position never change, wherever they are stored: kept, reconstructed from
/// other workers, or recomputed, they are the same bytes. A reader records their digest and learns
/// whether it changed. Outlives the epochs. Thread-safe.
class digest_book {
public:
  /// Capacity in positions; beyond, those of the oldest sequences are dropped.
  explicit digest_book(size_t positions_max) : positions_max_{positions_max} {}

  enum class finding : uint8_t {
    first,   ///< the position is not in the book
    same,    ///< same digest, recorded in this epoch
    kept,    ///< same digest, recorded in an earlier epoch
    changed, ///< different digest in this epoch
    lost,    ///< different digest in an earlier epoch
  };
  finding note(scheduler::sequence_id sequence, uint32_t position, uint64_t epoch,
               uint64_t digest) {
    const std::lock_guard lock{mutex_};
    auto& all = sequences_[sequence];
    if (position >= all.size()) {
      positions_ += position + 1 - all.size();
      all.resize(position + 1);
    }
    auto& x = all[position];
    const auto before = std::exchange(x, {epoch, digest});
    while (positions_ > positions_max_ && sequences_.size() > 1) forget(sequences_.begin());
    if (before.epoch == 0) return finding::first;
    const bool same = before.digest == digest;
    if (before.epoch == epoch) return same ? finding::same : finding::changed;
    losses_ += same ? 0 : 1;
    return same ? finding::kept : finding::lost;
  }

  /// Number of positions found lost.
  uint64_t losses() const {
    const std::lock_guard lock{mutex_};
    return losses_;
  }

  size_t positions() const {
    const std::lock_guard lock{mutex_};
    return positions_;
  }

private:
  struct entry {
    uint64_t epoch = 0; ///< 0: empty
    uint64_t digest = 0;
  };
  using entries = std::map<scheduler::sequence_id, std::vector<entry>>;

  void forget(entries::iterator which) {
    positions_ -= which->second.size();
    sequences_.erase(which);
  }

  const size_t positions_max_;
  mutable std::mutex mutex_;
  entries sequences_;
  size_t positions_ = 0;
  uint64_t losses_ = 0;
};

} // namespace lamella::actors
