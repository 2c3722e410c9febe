// Sequences that sit launches out, so that prompts go first (Splitwise IV-B).
#include "scheduler/composer.hpp"
#include "scheduler/prefill_plan.hpp"
#include "tests/scheduler/batch/batches.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace lamella::scheduler::test;
using std::chrono::milliseconds;

TEST_CASE("S-M12 sequences stand back for prompts, no one more often than allowed") {
  auto batch = seated({joining(1), joining(2)}, {.stand_backs = 2});
  for (int i = 0; i < 2; ++i) {
    const auto next = batch.next(true);
    CHECK(next.rows.empty());
    CHECK(next.standing == std::vector<uint32_t>{0, 1});
    batch.stood_back(next.standing);
  }
  batch.join(joining(3), start);
  batch.seat_joined();
  const auto next = batch.next(true);
  CHECK(next.rows == std::vector<uint32_t>{0, 1}); // they have aged: now they go first
  CHECK(next.standing == std::vector<uint32_t>{2});
  batch.stood_back(next.standing);
  CHECK(batch.next().rows == std::vector<uint32_t>{0, 1, 2}); // no prompt needs the launch
  CHECK(batch.next(true).rows == std::vector<uint32_t>{0, 1});
}

TEST_CASE("S-M12 the work that waits grows with positions, and scored rows count twice") {
  const auto id = [](uint64_t x) { return sequence_of(request_id{x}, 0); };
  prefill_plan plan{100};
  CHECK(plan.waiting_work() == 0);
  plan.add(id(1), 1000);
  CHECK(plan.waiting_work() == 1976); // 1000 + 1000 * 1000 / 1024
  CHECK(plan.waiting_work(1'000'000) == 1001);
  plan.next(1);
  CHECK(plan.waiting_work() == prefill_work(100, 900));
  plan.add(id(2), 50, 0, {}, true);
  plan.add(rebuild_entry{id(3), 40, {}, std::chrono::seconds{600}, 10});
  CHECK(plan.waiting_work()
        == prefill_work(100, 900) + prefill_work(0, 50) + 50 + prefill_work(10, 30));
}

TEST_CASE("S-M12 sequences stand back for prompts whose work is more than a launch may have") {
  composer mix{{milliseconds{60}, milliseconds{60}}};
  mix.ran(true, 1500, milliseconds{50});
  REQUIRE(mix.work_most(true) == 1800);
  prefill_plan plan{512};
  plan.add(sequence_of(request_id{9}, 0), 1000); // whose work is 1976
  auto batch = seated({joining(1)}, {.stand_backs = 2});
  CHECK(batch.next(mix.prompts_first(plan.waiting_work())).rows.empty());
  CHECK_FALSE(mix.prompts_first(plan.waiting_work(1'000'000))); // of a model where they are cheap
}

TEST_CASE("S-M12 no sequence stands back in the next attempt of an iteration that failed") {
  auto batch = seated({joining(1)}, {.stand_backs = 4});
  launch(batch);
  batch.drop();
  CHECK(batch.next(true).rows == std::vector<uint32_t>{0});
  const auto rows = launch(batch);
  commit(batch, rows);
  batch.ran(start, milliseconds{10});
  CHECK(batch.next(true).standing == std::vector<uint32_t>{0});
}

TEST_CASE("S-M12 unless configured, every sequence is in every launch") {
  auto batch = seated({joining(1), joining(2)});
  CHECK(batch.next(true).rows.size() == 2);
}
