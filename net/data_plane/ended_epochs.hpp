/// Which epochs of this process are over: their links may not be created any more.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

namespace lamella::net {

/// Epochs may end in any order, because a new one is opened while the one before serves. Remembers
/// those that have begun, and `remembered` that have ended; all others before those are over.
/// Thread-safe.
class ended_epochs {
public:
  static constexpr size_t remembered = 64;

  /// A link of that epoch is made: the epoch is open until its own end, however many newer ones end
  /// before. False: it is over.
  bool begin(uint64_t epoch) {
    std::lock_guard lock{mutex_};
    if (is_over(epoch)) return false;
    open_.insert(epoch);
    return true;
  }

  void end(uint64_t epoch) {
    std::lock_guard lock{mutex_};
    open_.erase(epoch);
    if (epoch < first_) return;
    ended_.insert(epoch);
    while (ended_.size() > remembered) {
      first_ = *ended_.begin() + 1;
      ended_.erase(ended_.begin());
    }
  }

  bool ended(uint64_t epoch) const {
    std::lock_guard lock{mutex_};
    return is_over(epoch);
  }

private:
  bool is_over(uint64_t epoch) const {
    return epoch < first_ ? !open_.contains(epoch) : ended_.contains(epoch);
  }

  mutable std::mutex mutex_;
  uint64_t first_ = 0; ///< all before it are over, but for open ones
  std::set<uint64_t> ended_, open_;
};

} // namespace lamella::net
