#include "scheduler/batch/common_stop.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {

std::vector<uint32_t> further(const std::vector<running_iteration>& ends) {
  return further_iterations(ends);
}

} // namespace

TEST_CASE("batches that end their iterations at about the same time launch no more") {
  CHECK(further({}).empty());
  CHECK(further({{100ms, 20ms}}) == std::vector<uint32_t>{0});
  CHECK(further({{100ms, 20ms}, {109ms, 20ms}, {105ms, 20ms}}) == std::vector<uint32_t>{0, 0, 0});
}

TEST_CASE("a batch launches another iteration where that is closer to the end of the others") {
  CHECK(further({{100ms, 20ms}, {111ms, 20ms}}) == std::vector<uint32_t>{1, 0});
  CHECK(further({{100ms, 20ms}, {100ms, 70ms}}) == std::vector<uint32_t>{3, 0});
  CHECK(further({{100ms, 20ms}, {106ms, 20ms}, {112ms, 20ms}}) == std::vector<uint32_t>{0, 0, 0});
  CHECK(further({{100ms, 20ms}, {108ms, 20ms}, {118ms, 20ms}}) == std::vector<uint32_t>{1, 1, 0});
}

TEST_CASE("of staggered batches none waits for longer than all others take turns") {
  // The fourth ends last, and the next iteration of the first one is as far behind it.
  CHECK(further({{100ms, 20ms}, {105ms, 20ms}, {110ms, 20ms}, {115ms, 20ms}})
        == std::vector<uint32_t>{0, 0, 0, 0});
  CHECK(further({{100ms, 20ms}, {101ms, 20ms}, {112ms, 20ms}, {116ms, 20ms}})
        == std::vector<uint32_t>{1, 1, 0, 0});
}

TEST_CASE("a batch that runs nothing stops at once, and nobody waits for its time") {
  CHECK(further({{500ms, 0ms}, {100ms, 20ms}}) == std::vector<uint32_t>{0, 0});
}

TEST_CASE("however long another one takes, a batch launches some iterations and no more") {
  CHECK(further({{100ms, 1ms}, {100ms, 1s}}) == std::vector<uint32_t>{further_most, 0});
}
