/// Exits the process when it cannot serve or shut down in order: a hung thread can be neither
/// joined nor trusted (reliability A1, A8).
#pragma once

#include "base/ticker.hpp"

#include <caf/all.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

namespace lamella::actors {

/// Shutdown timeout after which an actor (in a handler that never returns) or a device counts as
/// hung. No code of Lamella runs for so long without checking for cancellation.
constexpr std::chrono::seconds hang_limit{5};

/// Timeout of an orderly shutdown, which may free terabytes of memory.
constexpr std::chrono::seconds end_limit{30};

/// Timeout for any actor to run.
constexpr std::chrono::seconds turns_limit{10};

/// Guards a shutdown during its lifetime; if that takes longer than `limit`, the process exits at
/// once, with 70 and a log line.
class end_watch {
public:
  explicit end_watch(std::chrono::milliseconds limit);

private:
  ticker ticker_;
};

/// Pings an actor of the system periodically during its lifetime, which replies by way of the
/// thread that carries control links, where the system has one. When no reply comes for `limit`,
/// all threads of the actors hang or that one, and `on_hang` is called once, on a thread of its
/// own; by default the process exits with 70. Time in which the whole process was stopped does not
/// count. Must be destroyed before the system. Costs one message in `limit` / 40.
class system_watch {
public:
  system_watch(caf::actor_system& system, std::chrono::milliseconds limit,
               std::function<void()> on_hang = {});
  ~system_watch();

private:
  std::shared_ptr<std::atomic<bool>> said_; ///< a reply since the last poll
  caf::actor speaker_;
  ticker ticker_;
};

} // namespace lamella::actors
