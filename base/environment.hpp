/// External inputs of a service: date and randomness, in one place, so that a test can fix both and
/// get the same answer, byte by byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace lamella {

std::chrono::system_clock::time_point date_of_machine();

/// 64 bits from the system's source of randomness.
uint64_t chance_of_machine();

/// Actors on several threads call these at the same time. Time that passes is not here: it is
/// measured by each actor's own clock.
struct environment {
  std::function<std::chrono::system_clock::time_point()> date = date_of_machine;
  std::function<uint64_t()> chance = chance_of_machine;

  /// The date in seconds since 1970, as used by the API.
  int64_t seconds_since_1970() const;
};

} // namespace lamella
