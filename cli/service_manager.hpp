/// What systemd is told of a service (sd_notify(3)).
#pragma once

#include <string>

namespace lamella::cli {

/// Messages to the service manager that started this process with `Type=notify`; where none did,
/// they go nowhere. A manager that does not read loses them: nobody waits for it.
class service_manager {
public:
  /// Takes $NOTIFY_SOCKET out of the environment, so that child processes do not speak for this
  /// one. Before any thread.
  service_manager();
  ~service_manager();
  service_manager(const service_manager&) = delete;
  service_manager& operator=(const service_manager&) = delete;

  /// What it does, in words for `systemctl status`; again and again while it starts.
  void status(const std::string& words) const;
  /// It serves; also ends what reloading() began.
  void ready(const std::string& words) const;
  void reloading() const;
  void stopping() const;

private:
  void tell(const std::string& assignments) const;

  std::string socket_; ///< a path, or `@` and an abstract name; empty: nobody listens
  int descriptor_ = -1;
};

} // namespace lamella::cli
