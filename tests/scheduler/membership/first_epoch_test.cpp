#include "scheduler/membership/first_epoch.hpp"

#include <doctest/doctest.h>

namespace lamella::scheduler::test {

namespace {

using enum worker_role;
using seats = std::set<seat>;

/// Two replicas, two shards with a spare, one prefill worker.
const epoch_shape shape{.replicas = 2, .shards = 2, .prefill_seats = 1};
const seats all{{model, 0},     {model, 1},     {attention, 0},
                {attention, 1}, {attention, 2}, {prefill, 0}};

seats without(std::initializer_list<seat> gone) {
  auto rest = all;
  for (const auto& x : gone) rest.erase(x);
  return rest;
}

} // namespace

TEST_CASE("a service begins when everybody is there, spares aside") {
  CHECK(first_epoch(shape, all, all, {}) == beginning::opens);
  CHECK(first_epoch(shape, all, without({{attention, 1}}), {}) == beginning::opens);
  CHECK(first_epoch(shape, all, without({{model, 1}}), {}) == beginning::waits);
  CHECK(first_epoch(shape, all, {}, {}) == beginning::waits);
}

TEST_CASE("a service begins without the seats that fail as soon as all others are there") {
  const seats broken{{model, 1}};
  CHECK(first_epoch(shape, all, without({{model, 1}}), broken) == beginning::opens);
  CHECK(first_epoch(shape, all, without({{model, 1}, {prefill, 0}}), broken) == beginning::waits);
  CHECK(first_epoch(shape, all, without({{model, 1}, {attention, 0}, {attention, 1}}), broken)
        == beginning::waits);
  CHECK(first_epoch(shape, all, without({{prefill, 0}}), {{prefill, 0}}) == beginning::opens);
}

TEST_CASE("a service without any seat of a role that could serve is hopeless") {
  const seats replicas{{model, 0}, {model, 1}};
  CHECK(first_epoch(shape, all, {}, replicas) == beginning::hopeless);
  CHECK(first_epoch(shape, all, without({{model, 0}, {model, 1}}), replicas)
        == beginning::hopeless);
  CHECK(first_epoch(shape, all, {}, {{attention, 0}, {attention, 2}}) == beginning::hopeless);
  CHECK(first_epoch(shape, all, {}, {{attention, 0}}) == beginning::waits); // there is a spare
  // Its end is told here before its seat is free.
  CHECK(first_epoch(shape, all, {{model, 0}}, replicas) == beginning::hopeless);
}

} // namespace lamella::scheduler::test
