#include "base/patience.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella;

namespace {

int nice_now() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

} // namespace

TEST_CASE("a patient thread and those that it starts have a low priority, and nobody else") {
  const auto before = nice_now();
  int inside = 0, below = 0;
  patiently([&] {
    inside = nice_now();
    std::thread{[&] { below = nice_now(); }}.join();
  });
  CHECK(inside == std::max(before, patient_nice));
  CHECK(below == inside);
  CHECK(nice_now() == before);
}

TEST_CASE("what is thrown in a patient thread is thrown to whoever waits for it") {
  CHECK_THROWS_AS(patiently([] { throw std::range_error{"x"}; }), std::range_error);
}
