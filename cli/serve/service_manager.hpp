/// Notifications of a service to systemd (sd_notify(3)).
#pragma once

#include <chrono>
#include <string>

namespace lamella::cli {

/// Messages to the service manager that started this process with `Type=notify`; without one they
/// are dropped. Blocks for some seconds on a manager that does not read, except for status texts.
class service_manager {
public:
  /// Removes $NOTIFY_SOCKET from the environment, so that child processes cannot notify for this
  /// one. Call before any thread exists.
  service_manager();
  ~service_manager();
  service_manager(const service_manager&) = delete;
  service_manager& operator=(const service_manager&) = delete;

  /// Status text for `systemctl status`; may be lost.
  void status(const std::string& words) const;
  /// The service is ready; also ends a state of reloading().
  void ready(const std::string& words) const;
  void reloading() const;
  /// The service drains, for at most this time; asks the manager for that time and a margin.
  void stopping(std::chrono::milliseconds limit) const;

private:
  void tell(const std::string& assignments, int flags = 0) const;

  std::string socket_; ///< a path, or `@` and an abstract name; empty: nobody listens
  int descriptor_ = -1;
};

} // namespace lamella::cli
