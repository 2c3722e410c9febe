/// Integers beyond 64 bits.
#pragma once

#include <cstdlib>
#include <string>

namespace lamella {

/// An integer that no int64_t can hold, in the digits that it was written with.
struct big_integer {
  std::string digits; ///< decimal, behind a minus sign where it is below zero; no zeros in front

  bool is_negative() const { return digits.starts_with('-'); }
  double nearest() const { return std::strtod(digits.c_str(), nullptr); }

  /// Below 0, 0 or above 0.
  int compare(const big_integer& other) const {
    if (is_negative() != other.is_negative()) return is_negative() ? -1 : 1;
    const bool longer = digits.size() > other.digits.size();
    const int amounts = digits.size() == other.digits.size() ? digits.compare(other.digits)
                        : longer                             ? 1
                                                             : -1;
    return is_negative() ? -amounts : amounts;
  }

  friend bool operator==(const big_integer&, const big_integer&) = default;
};

} // namespace lamella
