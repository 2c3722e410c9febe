#include "cli/bench/actor_time.hpp"

#include <doctest/doctest.h>

#include <latch>
#include <string>
#include <thread>

#include <pthread.h>
#include <time.h>

namespace lamella::cli {

namespace {

constexpr std::chrono::milliseconds work{20};

std::chrono::nanoseconds own_time() {
  timespec x{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &x);
  return std::chrono::seconds{x.tv_sec} + std::chrono::nanoseconds{x.tv_nsec};
}

/// What actor_threads_time() makes of a thread of that name that has taken `work` of a processor.
/// Looks until it is `least`, or for long: what a thread took is written down when it waits.
std::chrono::nanoseconds counted(const std::string& name, std::chrono::nanoseconds least) {
  std::latch named{1}, may_work{1}, worked{1}, may_end{1};
  std::thread worker{[&] {
    pthread_setname_np(pthread_self(), name.c_str());
    named.count_down();
    may_work.wait();
    const auto until = own_time() + work;
    while (own_time() < until) {
    }
    worked.count_down();
    may_end.wait();
  }};
  named.wait();
  const auto before = actor_threads_time();
  may_work.count_down();
  worked.wait();
  auto found = actor_threads_time() - before;
  for (int i = 0; i < 100'000 && found < least; ++i) found = actor_threads_time() - before;
  may_end.count_down();
  worker.join();
  return found;
}

} // namespace

TEST_CASE("the actors' processor time is that of CAF's threads, and of no others") {
  CHECK(counted("caf.actor", work) >= work);
  CHECK(counted("lamella", {}).count() == 0);
}

} // namespace lamella::cli
