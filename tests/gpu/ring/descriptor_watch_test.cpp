// A waiter that reads sockets itself: what it hears of, asleep and awake.
#include "gpu/ring/doorbell.hpp"

#include <doctest/doctest.h>

#include <array>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

using namespace lamella::gpu;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto timeout = 60s;

struct socket_pair {
  socket_pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0); }
  ~socket_pair() {
    close(ends[0]);
    close(ends[1]);
  }
  void send() const { REQUIRE(write(ends[1], "x", 1) == 1); }
  std::array<int, 2> ends{};
};

/// Takes a byte each time it is told.
struct reader final : listener {
  explicit reader(int descriptor) : from{descriptor} {}
  void ring() override {
    char byte = 0;
    if (read(from, &byte, 1) == 1) taken.fetch_add(1);
  }
  int from;
  std::atomic<int> taken{0};
};

/// Arms, looks, sleeps, until it holds. False when a sleep lasted for too long.
template <class Condition> bool sleep_until(doorbell& bell, const Condition& holds) {
  const auto until = steady_clock::now() + timeout;
  while (!holds()) {
    const auto seen = bell.arm();
    if (holds()) {
      bell.disarm();
      break;
    }
    bell.wait(seen, until);
    if (steady_clock::now() >= until) return false;
  }
  return true;
}

} // namespace

TEST_CASE("a look tells of what can be read for as long as it can, until it is unwatched") {
  socket_pair x;
  descriptor_watch watch;
  const auto heard = std::make_shared<reader>(x.ends[0]);
  CHECK(!watch.look());
  watch.add(x.ends[0], heard);
  CHECK(!watch.look());
  x.send();
  x.send();
  CHECK(watch.look());
  CHECK(heard->taken == 1); // one was left
  CHECK(watch.look());
  CHECK(heard->taken == 2);
  CHECK(!watch.look());
  x.send();
  watch.remove(x.ends[0]);
  CHECK(!watch.look());
  CHECK(heard->taken == 2);
}

TEST_CASE("a look tells of room to write to who wants it") {
  socket_pair x;
  descriptor_watch watch;
  const auto heard = std::make_shared<reader>(x.ends[0]);
  watch.add(x.ends[0], heard);
  CHECK(!watch.look());
  watch.want_room(x.ends[0], true);
  CHECK(watch.look());
  const std::vector<char> much(1 << 16);
  while (write(x.ends[0], much.data(), much.size()) > 0) {
  }
  CHECK(!watch.look()); // it is full
  std::vector<char> taken(1 << 20);
  while (read(x.ends[1], taken.data(), taken.size()) > 0) {
  }
  CHECK(watch.look());
  watch.want_room(x.ends[0], false);
  CHECK(!watch.look());
}

TEST_CASE("a listener that is gone is told nothing") {
  socket_pair x;
  descriptor_watch watch;
  auto heard = std::make_shared<reader>(x.ends[0]);
  watch.add(x.ends[0], heard);
  x.send();
  heard.reset();
  CHECK(watch.look());
  char byte = 0;
  CHECK(read(x.ends[0], &byte, 1) == 1);
}

TEST_CASE("an attending waiter wakes for sockets, for rings of other processes and for the time") {
  socket_pair x;
  doorbell bell;
  bell.attend();
  doorbell other{bell.descriptors()}; // as another process maps it
  const auto heard = std::make_shared<reader>(x.ends[0]);
  bell.watch(x.ends[0], heard);
  constexpr int rounds = 20'000;
  std::atomic<int> rung{0}, done{0};
  std::thread ringer{[&] {
    for (int i = 1; i <= rounds; ++i) {
      while (done.load() != i - 1) std::this_thread::yield();
      if (i % 2 == 0) {
        x.send();
      } else {
        rung.store(i);
        other.ring();
      }
    }
  }};
  int late = 0;
  for (int i = 1; i <= rounds; ++i) {
    const auto come = [&] { return i % 2 == 0 ? heard->taken == i / 2 : rung == i; };
    late += sleep_until(bell, come) ? 0 : 1;
    done.store(i);
  }
  ringer.join();
  CHECK(late == 0);
  const auto until = steady_clock::now() + 17ms;
  while (steady_clock::now() < until) bell.wait(bell.arm(), until);
}

TEST_CASE("a ring between arming and a look still ends the sleep") {
  socket_pair x;
  doorbell bell;
  bell.attend();
  const auto heard = std::make_shared<reader>(x.ends[0]);
  bell.watch(x.ends[0], heard);
  const auto seen = bell.arm();
  bell.ring(); // takes the flag: a second one would not wake anybody
  bell.look();
  const auto until = steady_clock::now() + timeout;
  bell.wait(seen, until);
  CHECK(steady_clock::now() < until);
  // And it has been told of once: the next sleep is one.
  bell.wait(bell.arm(), steady_clock::now() + 1ms);
  x.send();
  bell.wait(bell.arm(), until);
  CHECK(heard->taken == 1);
}

TEST_CASE("a waiter that sleeps on its word is woken when a socket is added") {
  for (int round = 0; round < 300; ++round) {
    socket_pair x;
    doorbell bell;
    bell.attend();
    const auto heard = std::make_shared<reader>(x.ends[0]);
    x.send();
    std::thread adder{[&] { bell.watch(x.ends[0], heard); }};
    CHECK(sleep_until(bell, [&] { return heard->taken == 1; }));
    adder.join();
  }
}

TEST_CASE("a waiter that does not attend leaves sockets to who looks for it") {
  socket_pair x;
  doorbell bell;
  const auto heard = std::make_shared<reader>(x.ends[0]);
  bell.watch(x.ends[0], heard);
  x.send();
  bell.look();
  const auto until = steady_clock::now() + 5ms;
  while (steady_clock::now() < until) bell.wait(bell.arm(), until);
  CHECK(heard->taken == 0);
  CHECK(bell.watched().look());
  CHECK(heard->taken == 1);
}
