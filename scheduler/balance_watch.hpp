/// When the slot tables of an attention pool are levelled.
#pragma once

#include "scheduler/kv_balance.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace lamella::scheduler {

/// Looks at the shares of the tables, and says when to move sequences between them. A move costs
/// every stream a pause of some iterations, so it is only for what lasts.
class balance_watch {
public:
  using time = std::chrono::nanoseconds;

  /// So many looks in a row must find the tables unequal.
  static constexpr uint32_t looks = 5;
  /// Before the first move, and between two.
  static constexpr time rest = std::chrono::seconds{20};

  /// Whether to move now: the fullest table has a tenth of its slots more in use than the emptiest
  /// (`spread`), and a move would at least halve that (`after`).
  bool look(double spread, double after, time now) {
    if (!moved_) moved_ = now;
    if (spread <= balance_tolerance || after > spread / 2) {
      unequal_ = 0;
      return false;
    }
    if (++unequal_ < looks || now - *moved_ < rest) return false;
    unequal_ = 0;
    moved_ = now;
    return true;
  }

private:
  uint32_t unequal_ = 0;
  std::optional<time> moved_; ///< or looked first
};

} // namespace lamella::scheduler
