#include "cli/serve/service_manager.hpp"

#include "base/errno_text.hpp"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace lamella::cli {

service_manager::service_manager() {
  const char* socket_name = std::getenv("NOTIFY_SOCKET");
  if (socket_name == nullptr) return;
  socket_ = socket_name;
  unsetenv("NOTIFY_SOCKET");
  const bool known = socket_.size() > 1 && (socket_[0] == '/' || socket_[0] == '@');
  if (!known || socket_.size() >= sizeof(sockaddr_un::sun_path)) return;
  descriptor_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval timeout{5, 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

service_manager::~service_manager() {
  if (descriptor_ >= 0) close(descriptor_);
}

void service_manager::status(const std::string& words) const {
  tell("STATUS=" + words, MSG_DONTWAIT);
}

void service_manager::ready(const std::string& words) const { tell("READY=1\nSTATUS=" + words); }

void service_manager::reloading() const {
  using std::chrono::microseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch(); // CLOCK_MONOTONIC
  tell("RELOADING=1\nMONOTONIC_USEC="
       + std::to_string(std::chrono::duration_cast<microseconds>(now).count()));
}

void service_manager::stopping(std::chrono::milliseconds limit) const {
  const std::chrono::microseconds wanted = limit + std::chrono::seconds{15};
  tell("STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=" + std::to_string(wanted.count()));
}

void service_manager::tell(const std::string& assignments, int flags) const {
  if (descriptor_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = offsetof(sockaddr_un, sun_path) + socket_.size();
  if (sendto(descriptor_, assignments.data(), assignments.size(), flags | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size))
          < 0
      && flags == 0)
    spdlog::warn("service manager notification failed message=\"{}\" reason=\"{}\"",
                 assignments.substr(0, assignments.find('\n')), errno_text());
}

} // namespace lamella::cli
