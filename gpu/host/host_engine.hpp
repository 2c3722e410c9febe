/// All host devices of a process: their streams share one team of threads.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/doorbell.hpp"

#include <chrono>
#include <memory>

namespace lamella::gpu {

/// One driver thread advances the streams a step at a time and runs every kernel on the whole team.
/// When a replica waits for its shards, the same cores run the shards: there is no hand-over
/// between threads within an iteration. Of the runnable streams, the one that has used the least
/// time runs next, so a long prompt delays the decoding of others by at most one step.
class host_engine {
public:
  /// `threads`: the size of the team; `ops`: its kernel set.
  host_engine(unsigned threads, const operators& ops);

  /// Ends all work with `aborted`.
  ~host_engine();

  host_engine(const host_engine&) = delete;
  host_engine& operator=(const host_engine&) = delete;

  /// A device of this engine; must not outlive it.
  std::unique_ptr<device> make_device(std::string name);

  /// The doorbell for events that streams may wait for and that come from outside this engine:
  /// channels of other processes and threads ring it. Alive as long as it is held.
  std::shared_ptr<doorbell> bell() const;

  unsigned threads() const;
  const operators& ops() const;

  /// Steps taken since the start: a heartbeat that stops when the engine hangs.
  uint64_t steps() const;

  /// Delays every step by this time from now on; 0: no delay. For chaos and tests. Thread-safe.
  void slow_down(std::chrono::microseconds per_step);

  struct impl;

private:
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::gpu
