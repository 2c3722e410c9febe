/// Workers that are stopped, fail, leave, or get a fault on request.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// A process of this host is stopped (SIGSTOP) and will be killed (CHILD KEEPER to MEMBERSHIP).
struct worker_stopped {
  uint32_t pid = 0;
};

/// The worker of a seat fails again and again, `faults` times so far: a process of this host (CHILD
/// KEEPER to MEMBERSHIP), or one of the service's own process (OWN SEATS to MEMBERSHIP).
struct seat_failing {
  std::string role;
  uint32_t index = 0;
  std::string how; ///< how it ended last
  uint32_t faults = 0;
  bool here = false; ///< of the service's own process
};

/// The control process asks the worker to exit.
struct worker_leave {
  std::string reason;
  bool for_good = false; ///< its seat is gone, or it was drained: its process is to end
};

/// Asks MEMBERSHIP to take its part from a worker and to send it away. A spare takes the part;
/// without one the pool shrinks. Answered at once with a pool_change: refused with the reason, or
/// under way; a worker that asks itself may get `ask_again` instead.
struct worker_drain {
  std::string worker;  ///< its name or its seat
  bool leaves = false; ///< the worker asks itself, and ends; otherwise an operator asks
};

/// State of the answer to a worker that cannot be drained at the moment: it serves on, and asks
/// again after a while.
constexpr const char* ask_again = "ask again";

/// Injects a fault into a worker that allows it (actors/shared/injury.hpp).
struct worker_injury {
  std::string what;
  uint32_t duration_ms = 0; ///< of pause and slow
};

/// Asks MEMBERSHIP to inject a fault into a live worker: the one in the seat `target` ("model/0"),
/// or one of that role, or any; `chance` selects it. Answered with the seat.
struct injure {
  std::string target;
  worker_injury injury;
  uint64_t chance = 0;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_WORKERS_MESSAGES(x) \
  x(worker_stopped) x(seat_failing) x(worker_leave) x(worker_drain) x(worker_injury) x(injure)
// clang-format on
LAMELLA_WORKERS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
