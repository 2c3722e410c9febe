/// Ends the process where it cannot serve or end in order: a hung thread can be neither joined nor
/// trusted (reliability A1, A8).
#pragma once

#include "base/ticker.hpp"

#include <caf/all.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

namespace lamella::actors {

/// How long what was told to end may take before it counts as hung: an actor in a handler that
/// never returns, or a device that does not come back. Nothing of Lamella's own runs for so long
/// without looking whether it is wanted.
constexpr std::chrono::seconds hang_limit{5};

/// For the orderly end of a process, which gives back memory in terabytes.
constexpr std::chrono::seconds end_limit{30};

/// For any actor at all to have its turn.
constexpr std::chrono::seconds turns_limit{10};

/// While it lives, something ends; if that takes longer than `limit`, the process ends at once,
/// with 70 and a line in the log.
class end_watch {
public:
  explicit end_watch(std::chrono::milliseconds limit);

private:
  ticker ticker_;
};

/// While it lives, an actor of the system is asked again and again to say something. When it has
/// not for `limit`, all threads of the system hang, and `on_hang` is called once, on a thread of
/// its own; by default it ends the process with 70. Time in which the whole process stood still
/// does not count. Must be destroyed before the system. Costs one message in `limit` / 40.
class system_watch {
public:
  system_watch(caf::actor_system& system, std::chrono::milliseconds limit,
               std::function<void()> on_hang = {});
  ~system_watch();

private:
  std::shared_ptr<std::atomic<bool>> said_; ///< something, since the last look
  caf::actor speaker_;
  ticker ticker_;
};

} // namespace lamella::actors
