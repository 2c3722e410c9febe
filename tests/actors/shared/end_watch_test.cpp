// Watches over what hangs, in real time but without a bound on it: each waits for what must happen.
#include "actors/shared/end_watch.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/network/multiplexer.hpp>

#include <doctest/doctest.h>

#include <future>

#include <sys/wait.h>
#include <unistd.h>

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE("A8 threads of the actors that all hang are found, and actors that have turns are not") {
  caf::actor_system_config configuration;
  configuration.set("scheduler.max-threads", 1u);
  caf::actor_system system{configuration};
  std::promise<void> found, go_on;
  auto told = found.get_future();
  auto free = go_on.get_future().share();
  const system_watch watch{system, 2s, [&] { found.set_value(); }};
  const auto busy = [&] {
    std::promise<void> done;
    system.spawn([&](caf::event_based_actor*) { done.set_value(); });
    done.get_future().wait();
  };
  for (int i = 0; i < 1000; ++i) busy();
  CHECK(told.wait_for(0s) == std::future_status::timeout);
  system.spawn([free](caf::event_based_actor*) { free.wait(); });
  told.wait();
  go_on.set_value();
  busy(); // it has its thread again
}

TEST_CASE("A8 a thread of the control links that hangs is found while actors have turns") {
  caf::actor_system_config configuration;
  configuration.load<caf::io::middleman>();
  caf::actor_system system{configuration};
  std::promise<void> found, go_on;
  auto told = found.get_future();
  auto free = go_on.get_future().share();
  const system_watch watch{system, 2s, [&] { found.set_value(); }};
  system.middleman().backend().post([free] { free.wait(); });
  told.wait();
  std::promise<void> turn;
  system.spawn([&](caf::event_based_actor*) { turn.set_value(); });
  turn.get_future().wait();
  go_on.set_value();
}

TEST_CASE("A8 a process that does not end in order ends with 70, one that does is left alone") {
  { const end_watch watch{10min}; }
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const end_watch watch{1ms};
    pause();
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 70);
}

} // namespace lamella::actors::test
