/// The victims of `lamella chaos`, in order: a function of the service's seats and the seed.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace lamella::cli {

/// A seat of a worker process; `name` is empty while the seat is empty.
struct chaos_seat {
  std::string seat, role, name;
};

/// The seats of worker processes in a reply of /admin/status, in the order of their names, empty
/// ones included. Seats of the service's own process are excluded: it would kill itself.
std::vector<chaos_seat> worker_seats(const json_value& status);

/// The same seed and seats give the same sequence, whichever workers hold the seats.
class chaos_plan {
public:
  chaos_plan() = default;
  /// `target` is a seat, a role, role/name of a worker, or empty: any. Throws command_error with
  /// the known ones when it matches none of them.
  chaos_plan(const std::vector<chaos_seat>& seats, const std::string& target, uint64_t seed);

  /// The next seat; the target itself where the service has reported no seat.
  std::string next();

private:
  std::vector<std::string> seats_;
  std::mt19937_64 draws_; // what it draws is the same everywhere
};

} // namespace lamella::cli
