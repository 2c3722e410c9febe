#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/control_link.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

using namespace lamella;
using namespace lamella::actors;

namespace {

/// For a handshake on a busy machine.
constexpr std::chrono::milliseconds timeout = std::chrono::minutes{2};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

/// A long way to a port of this host: takes one connection, lets it wait before it carries bytes. A
/// bad one takes another one before that, and changes a bit of its first bytes.
class long_way {
public:
  long_way(uint16_t target, std::chrono::milliseconds wait, bool bad = false) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto where = loopback(0);
    socklen_t length = sizeof where;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &length) == 0);
    port_ = ntohs(where.sin_port);
    thread_ = std::thread{[this, target, wait, bad] {
      if (bad) run(target, wait, true);
      run(target, wait, false);
    }};
  }
  /// The ends of the connection must be gone.
  ~long_way() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }

private:
  void run(uint16_t target, std::chrono::milliseconds wait, bool flip) const {
    const int near = ::accept(listener_, nullptr, nullptr);
    if (near < 0) return;
    std::this_thread::sleep_for(wait);
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto where = loopback(target);
    if (::connect(far, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0)
      while (carry(near, far, std::exchange(flip, false))) {
      }
    ::close(near);
    ::close(far);
  }

  /// False: one of them has ended.
  static bool carry(int near, int far, bool flip) {
    std::array<pollfd, 2> fds{{{near, POLLIN, 0}, {far, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    for (const auto& [from, to] : {std::pair{0, far}, std::pair{1, near}}) {
      if (fds[static_cast<size_t>(from)].revents == 0) continue;
      std::array<char, 65536> bytes;
      const auto got = ::read(fds[static_cast<size_t>(from)].fd, bytes.data(), bytes.size());
      if (flip && got > 20) bytes[20] ^= 1; // of the nonce
      if (got <= 0 || ::send(to, bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL) != got)
        return false;
    }
    return true;
  }

  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

door_actor::behavior_type silent_door() {
  return {[](const join_ask&) -> caf::result<join_challenge> { return caf::sec::none; },
          [](const join_proof&) -> caf::result<join_grant> { return caf::sec::none; },
          [](const worker_facts&) -> caf::result<bool> { return true; },
          [](const worker_drain&) { return pool_change{}; }};
}

} // namespace

TEST_CASE("a handshake may take longer than heartbeats are apart") {
  config::control_settings control;
  control.listen = "127.0.0.1:0";
  control.heartbeat = std::chrono::milliseconds{20};
  control.dead = std::chrono::minutes{2};
  system_config served{2, control};
  caf::actor_system service{served};
  const auto door = service.spawn(silent_door);
  const auto secret = net::shared_secret::random();
  const auto gate = publish_door(service, door, control, {secret});
  {
    long_way way{gate->port(), std::chrono::milliseconds{400}};
    system_config joining{2, control, system_config::heartbeats::once_connected};
    caf::actor_system worker{joining};
    CHECK(reach_door(worker, {"127.0.0.1", way.port()}, control, secret, timeout).door);
  }
  caf::anon_send_exit(door, caf::exit_reason::user_shutdown);
}

TEST_CASE("a bit that changes on the way to the gate is no wrong secret; a wrong secret is") {
  config::control_settings control;
  control.listen = "127.0.0.1:0";
  control.dead = std::chrono::minutes{2};
  system_config served{2, control};
  caf::actor_system service{served};
  const auto door = service.spawn(silent_door);
  const auto secret = net::shared_secret::random();
  const auto gate = publish_door(service, door, control, {secret});
  {
    long_way way{gate->port(), std::chrono::milliseconds{0}, true};
    system_config joining{2, control, system_config::heartbeats::once_connected};
    caf::actor_system worker{joining};
    CHECK(reach_door(worker, {"127.0.0.1", way.port()}, control, secret, timeout).door);
    CHECK_THROWS_AS(reach_door(worker, {"127.0.0.1", gate->port()}, control,
                               net::shared_secret::random(), timeout),
                    denied_error);
  }
  caf::anon_send_exit(door, caf::exit_reason::user_shutdown);
}

TEST_CASE("once connected, heartbeats find out who is silent") {
  config::control_settings control;
  control.listen = "127.0.0.1:0";
  control.heartbeat = std::chrono::milliseconds{20};
  control.dead = std::chrono::milliseconds{500};
  // A service that sends none: to the worker it is as if it had stopped.
  system_config served{2, control, system_config::heartbeats::once_connected};
  caf::actor_system service{served};
  const auto door = service.spawn(silent_door);
  const auto secret = net::shared_secret::random();
  const auto gate = publish_door(service, door, control, {secret});
  {
    system_config joining{2, control, system_config::heartbeats::once_connected};
    caf::actor_system worker{joining};
    caf::scoped_actor self{worker};
    const auto reached =
        reach_door(worker, {"127.0.0.1", gate->port()}, control, secret, timeout).door;
    self->monitor(reached);
    bool lost = false;
    self->receive([&](const caf::down_msg&) { lost = true; },
                  caf::after(std::chrono::minutes{5}) >> [] {});
    CHECK(lost);
  }
  caf::anon_send_exit(door, caf::exit_reason::user_shutdown);
}
