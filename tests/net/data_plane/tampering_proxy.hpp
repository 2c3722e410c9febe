/// A stretch of wire between two TCP peers that a test can spoil.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <thread>

namespace lamella::test {

/// Carries one connection to a port of this host. What comes from the connecting side goes through
/// `spoil(offset, bytes)`, which may change the bytes; it returns how many of them to pass on.
/// Fewer than all: nothing more is read from that side; `hang_up` then ends the connection as well.
class tampering_proxy {
public:
  using spoiler = std::function<size_t(uint64_t, std::span<unsigned char>)>;

  tampering_proxy(uint16_t target, spoiler spoil, bool hang_up = false)
      : target_{target}, spoil_{std::move(spoil)}, hang_up_{hang_up} {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto where = loopback(0);
    socklen_t length = sizeof where;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0
        || ::listen(listener_, 1) != 0
        || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &length) != 0
        || ::pipe(stop_.data()) != 0)
      throw std::runtime_error{"tampering_proxy: no socket"};
    port_ = ntohs(where.sin_port);
    thread_ = std::thread{[this] { run(); }};
  }
  ~tampering_proxy() {
    ::close(stop_[1]); // the thread sees its end of the pipe become readable
    thread_.join();
    ::close(stop_[0]);
    ::close(listener_);
  }
  uint16_t port() const { return port_; }

private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(port);
    return a;
  }

  /// Which of the two may be read; -1 to stop.
  int wait(int a, int b) {
    std::array<pollfd, 3> fds{{{stop_[0], POLLIN, 0}, {a, POLLIN, 0}, {b, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return -1;
    return fds[1].revents != 0 ? a : b;
  }

  static bool write_all(int to, std::span<const unsigned char> bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
  }

  void run() {
    if (wait(listener_, -1) != listener_) return;
    const int near = ::accept(listener_, nullptr, nullptr);
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto where = loopback(target_);
    if (::connect(far, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0) carry(near, far);
    ::close(near);
    ::close(far);
  }

  void carry(int near, int far) {
    uint64_t offset = 0;
    bool reading = true;
    std::array<unsigned char, 1 << 16> buffer;
    while (true) {
      const int ready = wait(reading ? near : -1, far);
      if (ready < 0) return;
      const auto got = ::recv(ready, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      std::span bytes{buffer.data(), static_cast<size_t>(got)};
      if (ready == far) {
        if (!write_all(near, bytes)) return;
        continue;
      }
      const auto pass = spoil_(offset, bytes);
      offset += bytes.size();
      if (!write_all(far, bytes.first(pass))) return;
      if (pass == bytes.size()) continue;
      if (hang_up_) return;
      reading = false;
    }
  }

  uint16_t target_, port_ = 0;
  spoiler spoil_;
  bool hang_up_;
  int listener_ = -1;
  std::array<int, 2> stop_{-1, -1};
  std::thread thread_;
};

} // namespace lamella::test
