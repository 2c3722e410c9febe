// Sequences that sit launches out, so that prompts go first (Splitwise IV-B).
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
