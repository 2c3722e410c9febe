/// OWN SEATS: the WORKERs of this process; takes their seats, and takes each again when its WORKER
/// has failed.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/join.hpp"
#include "actors/shared/suspect_board.hpp"
#include "actors/worker/worker_config.hpp"
#include "scheduler/membership/seat_restarts.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

/// Restarts of the whole pipeline before the process exits, and of a seat of this process before it
/// is told as failing (reliability A8).
constexpr uint32_t restarts_max = 5;
constexpr std::chrono::seconds restart_window{30};

/// MEMBERSHIP has lost the WORKER of a seat.
struct own_seat_lost {
  std::string seat, reason;
  uint64_t epoch = 0; ///< in which it had a part; 0: it had none
  suspect_board::budget budget{};
};

/// What takes a seat: the configuration of its WORKER, and all of its facts but the handle.
struct own_worker {
  worker_config config;
  worker_facts facts;
};

struct own_seats_config {
  std::vector<scheduler::seat> seats;
  /// On the actor's thread. Throws std::exception with the reason.
  std::function<own_worker(const scheduler::seat&, const join_grant&)> make;
  /// Whether the process has to end, of which it has told then: a device is lost. May be empty.
  std::function<bool()> is_over{};
  bool own_threads = true; ///< one for each WORKER, as in a process of its own
};

struct own_seats_state {
  own_seats_config config;
  membership_actor members;
  std::map<scheduler::seat, worker_actor> workers;
  std::deque<scheduler::seat> wanted; ///< to be taken, one after the other
  std::set<scheduler::seat> retired;  ///< taken away: not taken again
  bool taking = false;                ///< one of them is being taken
  std::optional<caf::typed_response_promise<bool>> asked;
  std::map<scheduler::seat, scheduler::seat_restarts> restarts; ///< of seats that have failed
  uint64_t failed_epoch = 0; ///< the newest in which seats failed
  uint64_t failures = 0;
  const char* name = "own_seats";
};

/// One for one, for ever, with a growing delay. Of WORKERs that fail in one epoch only the first
/// has failed by itself; MEMBERSHIP is told of a seat that does so again and again, and ends the
/// service where no other can do its part (reliability A8). A new list of seats has those that are
/// new taken; the WORKERs of those that are not in it are sent away by MEMBERSHIP. On an exit
/// message it takes its WORKERs along.
own_seats_actor::behavior_type own_seats(own_seats_actor::stateful_pointer<own_seats_state> self,
                                         own_seats_config config);

/// "model-0"
std::string name_of(const scheduler::seat& where);

/// Starts it.
own_seats_actor start_own_seats(caf::actor_system& system, own_seats_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::own_seat_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::own_seats_config)
