/// What the K and V of each position were when they were last looked at (reliability A4, D1: I9).
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace lamella::actors {

/// K and V of a position never change once they are there for good, wherever they lie: kept, copied
/// together from other workers, or computed again, they are the same bytes. Who reads them notes a
/// digest, and is told when it is another one than before. Outlives the epochs. Thread-safe.
class digest_book {
public:
  /// Remembers so many positions; beyond, those of the oldest sequences are forgotten.
  explicit digest_book(size_t positions_max) : positions_max_{positions_max} {}

  enum class finding : uint8_t {
    first,   ///< nothing is known of that position
    same,    ///< as it was in this epoch
    kept,    ///< as it was in an epoch before
    changed, ///< it was another one in this epoch
    lost,    ///< it was another one in an epoch before
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

  /// So often a position was found lost.
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
    uint64_t epoch = 0; ///< 0: nothing is known
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
