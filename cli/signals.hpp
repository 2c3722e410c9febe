/// Signals as events: they come through a descriptor instead of handlers.
#pragma once

#include <chrono>

namespace lamella::cli {

/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and those it starts later, and ignores
/// SIGPIPE. One per process, made before any thread.
class signal_watch {
public:
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  enum class event { terminate, hang_up, ended };

  /// Blocks until a signal comes or end() was called.
  event wait();

  /// Makes one wait() return `ended`. Thread-safe.
  void end();

  /// Has SIGTERM or SIGINT come? It stays, as SIGHUP does: the next wait() still gets it.
  bool terminate_asked();

  /// The same, waiting for it for so long at most.
  bool terminate_within(std::chrono::milliseconds time);

  /// Has another one come after that?
  bool terminate_asked_again();

private:
  int signals_, end_;
  bool terminate_ = false, hang_up_ = false; ///< read already, not yet told by wait()
  bool again_ = false;                       ///< terminate_ was read twice
};

} // namespace lamella::cli
