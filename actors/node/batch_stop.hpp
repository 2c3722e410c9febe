/// Stops the batches of a pipeline at about the same time.
#pragma once

#include "actors/protocol/actors.hpp"
#include "scheduler/batch/common_stop.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Until a batch has ended an iteration.
constexpr caf::timespan iteration_timeout = std::chrono::seconds{60};

/// A part of the actor that it was made for: its functions run on that actor's thread. From
/// observe() on, the batches launch nothing ahead, and tell of the end of each iteration.
class batch_stop : public std::enable_shared_from_this<batch_stop> {
public:
  using result = std::function<void(std::optional<std::string> failure)>;

  /// `goes_on`: whether the pipeline still serves; nothing is asked or called when it does not.
  batch_stop(caf::event_based_actor* self, const std::vector<batch_actor>& batches,
             std::function<bool()> goes_on);

  /// Calls `ready` when all batches have told of an iteration from its beginning to its end, or run
  /// none. The allocator knows then what was committed a moment ago.
  void observe(std::function<void()> ready);

  /// Stops each batch behind the iteration by which none waits long for the others
  /// (scheduler/batch/common_stop.hpp), and calls `done` when all have stopped.
  void stop(result done);

  /// Calls nothing any more, and lets go of the batches.
  void abandon();

private:
  struct one {
    batch_actor who;
    caf::actor_clock::time_point asked{};
    scheduler::running_iteration newest;
    uint32_t ends = 0;    ///< ends of iterations that it has told of
    bool rests = false;   ///< it ran nothing when it was asked
    uint32_t further = 0; ///< while stopping: iterations that it ends before it is told
  };
  void ask(size_t i);
  void on_iteration_end(size_t i, bool good);
  void tell_to_stop(size_t i);
  bool all_observed() const;

  caf::event_based_actor* self_;
  std::vector<one> batches_;
  std::function<bool()> goes_on_;
  std::function<void()> ready_;
  result done_;
  bool stopping_ = false;
  size_t left_ = 0; ///< that have not stopped
  std::optional<std::string> failure_;
};

} // namespace lamella::actors
