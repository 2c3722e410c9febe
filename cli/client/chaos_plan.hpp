/// Whom `lamella chaos` injures, one after another: a function of the service's seats and the seed.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace lamella::cli {

/// A seat of a worker process; `name` is empty while nobody sits there.
struct chaos_seat {
  std::string seat, role, name;
};

/// The seats of worker processes in an answer of /admin/status, in the order of their names, also
/// those that nobody has. Seats of the service's own process are none: it would end itself.
std::vector<chaos_seat> worker_seats(const json_value& status);

/// The same seed and the same seats give the same sequence, whoever is there when its turn comes.
class chaos_plan {
public:
  chaos_plan() = default;
  /// `target` is a seat, a role, role/name of a worker, or empty: any. Throws command_error with
  /// those that are known when it is none of them.
  chaos_plan(const std::vector<chaos_seat>& seats, const std::string& target, uint64_t seed);

  /// The seat that is next; the target itself where the service has told of no seat.
  std::string next();

private:
  std::vector<std::string> seats_;
  std::mt19937_64 draws_; // what it draws is the same everywhere
};

} // namespace lamella::cli
