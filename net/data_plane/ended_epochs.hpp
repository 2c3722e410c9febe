/// Which epochs of this process are over: their links may not be created any more.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

namespace lamella::net {

/// Epochs may end in any order, because a new one is opened while the one before serves. Remembers
/// `remembered` of them; all before those are over. Thread-safe.
class ended_epochs {
public:
  static constexpr size_t remembered = 64;

  void end(uint64_t epoch) {
    std::lock_guard lock{mutex_};
    if (epoch < first_) return;
    ended_.insert(epoch);
    while (ended_.size() > remembered) {
      first_ = *ended_.begin() + 1;
      ended_.erase(ended_.begin());
    }
  }

  bool ended(uint64_t epoch) const {
    std::lock_guard lock{mutex_};
    return epoch < first_ || ended_.contains(epoch);
  }

private:
  mutable std::mutex mutex_;
  uint64_t first_ = 0; ///< all before it are over
  std::set<uint64_t> ended_;
};

} // namespace lamella::net
