/// What systemd is told of a service (sd_notify(3)).
#pragma once

#include <chrono>
#include <string>

namespace lamella::cli {

/// Messages to the service manager that started this process with `Type=notify`; where none did,
/// they go nowhere. A manager that does not read is waited for for some seconds, but for words.
class service_manager {
public:
  /// Takes $NOTIFY_SOCKET out of the environment, so that child processes do not speak for this
  /// one. Before any thread.
  service_manager();
  ~service_manager();
  service_manager(const service_manager&) = delete;
  service_manager& operator=(const service_manager&) = delete;

  /// What it does, in words for `systemctl status`, which may be lost.
  void status(const std::string& words) const;
  /// It serves; also ends what reloading() began.
  void ready(const std::string& words) const;
  void reloading() const;
  /// It drains, for so long at most; the manager is asked for that time and some more.
  void stopping(std::chrono::milliseconds limit) const;

private:
  void tell(const std::string& assignments, int flags = 0) const;

  std::string socket_; ///< a path, or `@` and an abstract name; empty: nobody listens
  int descriptor_ = -1;
};

} // namespace lamella::cli
