#include "scheduler/membership/seats.hpp"

#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace lamella::scheduler;

TEST_CASE("Workers take the wished seat, else the first free one, until the pool is full") {
  seat_plan plan;
  plan.add(worker_role::model, 2);
  plan.add(worker_role::attention, 3);
  CHECK(plan.missing() == "model/0, model/1, attention/0, attention/1, attention/2");
  const auto wished = plan.take(worker_role::attention, 1);
  REQUIRE(wished);
  CHECK(to_string(wished->where) == "attention/1");
  CHECK(plan.occupied(wished->where));
  CHECK_FALSE(plan.occupied({worker_role::attention, 0}));
  CHECK_FALSE(plan.occupied({worker_role::model, 1}));
  CHECK(plan.take(worker_role::attention, 1)->where.index == 0);  // taken: another one
  CHECK(plan.take(worker_role::attention, 17)->where.index == 2); // no such seat
  CHECK_FALSE(plan.take(worker_role::attention));
  CHECK_FALSE(plan.take(worker_role::prefill));
  CHECK(plan.missing() == "model/0, model/1");
  CHECK(plan.take(worker_role::model)->where.index == 0);
  CHECK_FALSE(plan.complete());
  CHECK(plan.take(worker_role::model)->where.index == 1);
  CHECK(plan.complete());
  CHECK(plan.missing().empty());
  CHECK(plan.taken_count(worker_role::attention) == 3);
}

TEST_CASE("A late goodbye of an old incarnation does not free the seat of its successor") {
  seat_plan plan;
  plan.add(worker_role::model, 1);
  const auto first = *plan.take(worker_role::model);
  CHECK(plan.give_back(first.where, first.incarnation));
  REQUIRE(plan.free_seats().size() == 1);
  CHECK(plan.free_seats().front().where == first.where);
  CHECK(plan.free_seats().front().incarnation == first.incarnation);
  const auto second = *plan.take(worker_role::model);
  CHECK(plan.free_seats().empty());
  CHECK(second.incarnation == first.incarnation + 1);
  CHECK_FALSE(plan.give_back(first.where, first.incarnation));
  CHECK(plan.complete());
  CHECK(plan.give_back(second.where, second.incarnation));
  CHECK_FALSE(plan.give_back(second.where, second.incarnation)); // once
  CHECK_FALSE(plan.give_back({worker_role::prefill, 0}, 1));
}

TEST_CASE("In any order of joins and losses a seat has one holder and incarnations only rise") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    seat_plan plan;
    plan.add(worker_role::model, 2);
    plan.add(worker_role::attention, 3);
    plan.add(worker_role::prefill, 1);
    std::map<seat, uint32_t> holders, newest;
    for (int i = 0; i < 500; ++i) {
      const auto role = static_cast<worker_role>(random.below(3));
      const auto index = static_cast<uint32_t>(random.below(3));
      if (random.below(2) == 0) {
        if (const auto got = plan.take(role, index)) {
          CHECK_FALSE(holders.contains(got->where));
          CHECK(got->incarnation > newest[got->where]);
          holders[got->where] = newest[got->where] = got->incarnation;
        } else {
          CHECK(plan.taken_count(role) == plan.members(role));
        }
      } else {
        const seat where{role, index};
        const auto held = holders.find(where);
        CHECK(plan.give_back(where, newest[where]) == (held != holders.end()));
        if (held != holders.end()) holders.erase(held);
      }
      CHECK(plan.free_count() == 6 - holders.size());
    }
  }
}

TEST_CASE("Roles are named as the pools are") {
  for (auto role : {worker_role::model, worker_role::attention, worker_role::prefill})
    CHECK(role_named(to_string(role)) == role);
  CHECK_FALSE(role_named("gateway"));
}

TEST_CASE("L-M03 groups of a role share its indices and nothing else") {
  seat_plan plan;
  const seat_group pool{worker_role::attention}, far{worker_role::attention, "far"};
  plan.add(pool, 1);
  plan.add(far, 2);
  plan.add(pool, 1);
  CHECK(plan.members_of(pool) == 2);
  CHECK(plan.members_of(far) == 2);
  CHECK(plan.members(worker_role::attention) == 4);
  CHECK(to_string(far) == "attention/far");
  const auto first = plan.take(far);
  REQUIRE(first);
  CHECK(to_string(first->where) == "attention/1");
  CHECK(first->where.group() == far);
  CHECK(plan.take(far, 0)->where.index == 2); // 0 is of the other group
  CHECK_FALSE(plan.take(far));
  CHECK(plan.place_of(first->where) == 0);
  CHECK(plan.place_of({worker_role::attention, 2, "far"}) == 1);
  CHECK(plan.place_of({worker_role::attention, 3}) == 1);
  CHECK(plan.take(pool, 3)->where.index == 3);
  CHECK(plan.find(worker_role::attention, 2) == seat{worker_role::attention, 2, "far"});
  CHECK_FALSE(plan.find(worker_role::attention, 4));
  // Frames name a seat by its index, so its incarnations go on whatever group it is of.
  CHECK(plan.give_back(first->where, first->incarnation));
  plan.remove(first->where);
  plan.add(pool, 1);
  const auto again = plan.take(pool, 1);
  REQUIRE(again);
  CHECK(again->where == seat{worker_role::attention, 1});
  CHECK(again->incarnation == first->incarnation + 1);
}
