// The tables of a pool are looked at every second, and MEMBERSHIP hears of those that stay unequal.
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/scaling/balancer.hpp"
#include "tests/actors/membership/membership_world.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

namespace {

struct balanced_world : membership_world {
  std::shared_ptr<allocator_book> slots = std::make_shared<allocator_book>();
  process model, a0, a1, prefill;

  balanced_world() {
    want_epoch();
    model = join("model");
    a0 = join("attention");
    a1 = join("attention");
    prefill = join("prefill");
    REQUIRE(opened.size() == 1);
    spawn(balancer, balancer_config{1, spawn(stand_in_allocator(slots)), members});
  }
};

} // namespace

TEST_CASE_FIXTURE(balanced_world, "L-M03 tables that stay unequal are levelled, others are not") {
  slots->balance = {0.05, 0.05};
  advance(60s, 1s);
  CHECK(due.empty());
  slots->balance = {0.5, 0.5}; // nothing would help
  advance(30s, 1s);
  CHECK(due.empty());
  slots->balance = {0.5, 0.1};
  advance(30s, 1s);
  CHECK(due.size() == 1);
}

} // namespace lamella::actors::test
