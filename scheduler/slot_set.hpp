/// A set of slots of one table.
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lamella::scheduler {

/// For example the slots without parity (reliability A6). Every call costs O(slots of the runs
/// given).
class slot_set {
public:
  explicit slot_set(uint32_t slots = 0) : in_(slots) {}

  void insert(std::span<const slot_run> runs) { put(runs, true); }
  void erase(std::span<const slot_run> runs) { put(runs, false); }

  bool contains(uint32_t slot) const { return in_[slot]; }
  uint32_t slots() const { return static_cast<uint32_t>(in_.size()); }
  uint32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }

  /// Whether any slot of the runs is in the set.
  bool meets(std::span<const slot_run> runs) const {
    for (const auto& run : runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (in_[slot]) return true;
    return false;
  }

  /// The slots of the runs that are in the set (or, `inside` false, that are not), in their order.
  std::vector<slot_run> part(std::span<const slot_run> runs, bool inside) const {
    std::vector<slot_run> result;
    for (const auto& run : runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot) {
        if (in_[slot] != inside) continue;
        if (!result.empty() && result.back().first + result.back().length == slot)
          ++result.back().length;
        else
          result.push_back({slot, 1});
      }
    return result;
  }

private:
  void put(std::span<const slot_run> runs, bool inside) {
    for (const auto& run : runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot) {
        if (in_[slot] == inside) continue;
        in_[slot] = inside;
        inside ? ++count_ : --count_;
      }
  }

  std::vector<bool> in_;
  uint32_t count_ = 0;
};

} // namespace lamella::scheduler
