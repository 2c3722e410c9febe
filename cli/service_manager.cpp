#include "cli/service_manager.hpp"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
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
}

service_manager::~service_manager() {
  if (descriptor_ >= 0) close(descriptor_);
}

void service_manager::status(const std::string& words) const { tell("STATUS=" + words); }

void service_manager::ready(const std::string& words) const { tell("READY=1\nSTATUS=" + words); }

void service_manager::reloading() const {
  using std::chrono::microseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch(); // CLOCK_MONOTONIC
  tell("RELOADING=1\nMONOTONIC_USEC="
       + std::to_string(std::chrono::duration_cast<microseconds>(now).count()));
}

void service_manager::stopping() const { tell("STOPPING=1\nSTATUS=draining"); }

void service_manager::tell(const std::string& assignments) const {
  if (descriptor_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = offsetof(sockaddr_un, sun_path) + socket_.size();
  [[maybe_unused]] const auto sent =
      sendto(descriptor_, assignments.data(), assignments.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size));
}

} // namespace lamella::cli
