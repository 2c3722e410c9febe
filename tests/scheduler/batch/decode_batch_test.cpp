#include "scheduler/slot_pool.hpp"
#include "tests/random.hpp"
#include "tests/scheduler/batch/batches.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace lamella::scheduler;
using namespace lamella::scheduler::test;
using lamella::model::token_id;
using leave_answer = decode_batch::leave_answer;
using std::chrono::milliseconds;

TEST_CASE("V-M14 sequences get rows when they are seated, and are in each iteration from then on") {
  decode_batch batch;
  batch.join(joining(1), start);
  batch.join(joining(2), start);
  CHECK(batch.joins());
  CHECK(batch.next().rows.empty());
  CHECK(batch.seat_joined() == std::vector<uint32_t>{0, 1});
  CHECK(batch.seat_of(seq(2)) == 1);
  CHECK(batch.size() == 2);
  CHECK(launch(batch) == std::vector<uint32_t>{0, 1});
  CHECK(batch.at(0).next() == 11);
  commit(batch, {0, 1});
  CHECK(batch.at(0).of.position == 11);
  CHECK(batch.at(0).of.last == 5);
  CHECK(batch.at(0).written == std::vector<token_id>{77});
  CHECK(batch.table().take_changes().first.size() == 2);
}

TEST_CASE("a row that leaves departs once no launch uses its slots, with what it has written") {
  auto batch = seated({joining(1), joining(2)});
  const auto first = launch(batch), ahead = launch(batch);
  CHECK(batch.leave(seq(1), false) == leave_answer::leaves);
  CHECK(batch.depart().empty());
  commit(batch, first);
  CHECK(batch.depart().empty());
  commit(batch, ahead);
  const auto gone = batch.depart();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].sequence == seq(1));
  CHECK_FALSE(gone[0].evicted);
  CHECK(gone[0].written_from == 10);
  CHECK(gone[0].written.empty()); // its tokens after it left do not count
  CHECK_FALSE(batch.seat_of(seq(1)));
  CHECK(batch.at(1).of.generated == 3);
}

TEST_CASE("one that yields says so when it departs; one that leaves anyway does not yield") {
  auto batch = seated({joining(1), joining(2)});
  CHECK(batch.leave(seq(1), true) == leave_answer::leaves);
  CHECK(batch.leave(seq(2), false) == leave_answer::leaves);
  CHECK(batch.leave(seq(2), true) == leave_answer::ends_anyway);
  CHECK(batch.leave(seq(3), true) == leave_answer::unknown);
  const auto gone = batch.depart();
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].yields);
  CHECK_FALSE(gone[1].yields);
  batch.join(joining(4), start);
  CHECK(batch.leave(seq(4), false) == leave_answer::leaves); // before it had a row
  CHECK_FALSE(batch.joins());
  CHECK(batch.depart().size() == 1);
}

TEST_CASE("it ends at an end token or at its length, exactly there") {
  auto a = joining(1), b = joining(2);
  a.max_tokens = 3;
  b.ends = {9};
  auto batch = seated({a, b});
  auto rows = launch(batch);
  const auto first = batch.commit(0, 9);
  CHECK((first.counts && first.index == 1 && first.reason == finish::none));
  CHECK(batch.commit(1, 5).reason == finish::none);
  launch(batch);
  CHECK(batch.commit(0, 5).reason == finish::length);
  CHECK(batch.commit(1, 9).reason == finish::stop);
  CHECK(batch.next().rows.empty());
  CHECK(batch.depart().size() == 2);
}

TEST_CASE("a token of logits that are not finite neither counts nor moves the row") {
  auto batch = seated({joining(1)});
  launch(batch);
  CHECK(batch.commit(0, 5, false).counts);
  CHECK(batch.at(0).of.position == 10);
  batch.fail(0);
  CHECK(batch.depart().size() == 1);
}

TEST_CASE("decision 20: rows are known ahead unless somebody comes, ends, or needs the token") {
  CHECK(seated({joining(1)}).rows_are_known());
  auto comes = seated({joining(1)});
  comes.join(joining(2), start);
  CHECK_FALSE(comes.rows_are_known());
  auto ends = joining(1);
  ends.max_tokens = 3;
  auto batch = seated({ends});
  launch(batch);
  CHECK(batch.rows_are_known()); // token 2 of 3 is on its way
  launch(batch);
  CHECK_FALSE(batch.rows_are_known());
  auto history = joining(1);
  history.needs_history = true;
  CHECK_FALSE(seated({history}).rows_are_known());
  auto leaves = seated({joining(1), joining(2)});
  leaves.leave(seq(1), false);
  CHECK_FALSE(leaves.rows_are_known());
  CHECK_FALSE(seated({joining(1, 10)}).rows_are_known()); // no slot for its next token
}

TEST_CASE("a row that waits sits out; the others go on") {
  auto batch = seated({joining(1), joining(2)});
  batch.wait(0, true);
  CHECK(batch.next().rows == std::vector<uint32_t>{1});
  batch.wait(0, false);
  CHECK(batch.next().rows == std::vector<uint32_t>{0, 1});
}

TEST_CASE("slots are asked for once, before they run out, and a grant lets the row go on") {
  auto batch = seated({joining(1, 19)});
  CHECK(batch.next().growing.empty()); // nine left
  launch(batch);
  CHECK(batch.next().growing == std::vector<uint32_t>{0});
  CHECK(batch.next().growing.empty());
  while (!launch(batch).empty()) {
  }
  CHECK(batch.at(0).in_flight == 9);
  batch.leave(seq(1), false);
  for (int i = 0; i < 9; ++i) batch.commit(0, 5);
  CHECK(batch.depart().empty()); // the answer is on its way, and gives it slots
  batch.granted(seq(1), {{2000, 32}});
  CHECK(batch.at(0).capacity == 51);
  CHECK(batch.depart().size() == 1);
  batch.granted(seq(1), {{3000, 32}}); // nobody's
}

TEST_CASE("V-M15 the youngest of the same slot table is preempted, one at a time") {
  auto batch = seated({joining(1, 10), joining(2), joining(3, 10), joining(4, 100, 1)});
  CHECK(batch.next().growing == std::vector<uint32_t>{0, 2});
  CHECK(batch.refused(seq(1)) == 2); // sequence 3: 4 has its KV elsewhere
  CHECK_FALSE(batch.refused(seq(3)));
  CHECK(batch.next().growing == std::vector<uint32_t>{0});
  CHECK_FALSE(batch.refused(seq(1))); // slots are on their way back
  const auto gone = batch.depart();
  REQUIRE(gone.size() == 1);
  CHECK((gone[0].sequence == seq(3) && gone[0].evicted));
  CHECK(batch.next().growing == std::vector<uint32_t>{0});
  CHECK(batch.refused(seq(1)) == 1);
}

TEST_CASE("nobody is preempted for a row that has slots left, or leaves") {
  auto batch = seated({joining(1, 15), joining(2)});
  batch.next();
  CHECK_FALSE(batch.refused(seq(1)));
  auto leaves = seated({joining(1, 10), joining(2)});
  leaves.next();
  leaves.leave(seq(1), false);
  CHECK_FALSE(leaves.refused(seq(1)));
}

TEST_CASE("a row that leaves runs in the attempt that clears what a dropped iteration left of it") {
  auto batch = seated({joining(1), joining(2)});
  launch(batch);
  launch(batch);
  batch.drop();
  CHECK(batch.at(0).in_flight == 0);
  batch.leave(seq(1), false);
  CHECK(batch.depart().empty());
  CHECK(launch(batch) == std::vector<uint32_t>{0, 1});
  batch.ran(start, milliseconds{1});
  CHECK_FALSE(batch.commit(0, 5).counts);
  CHECK(batch.commit(1, 5).counts);
  CHECK(batch.depart().size() == 1);
  CHECK(batch.at(1).of.position == 11); // nothing of the dropped ones counts
}

TEST_CASE("a batch rests while lost KV is recomputed, and while sequences of an epoch gather") {
  decode_batch batch{{.rebuild_percent = 25, .gathers = true}};
  batch.join(joining(1), start);
  CHECK(batch.rest(start) == milliseconds{2});
  CHECK(batch.rest(milliseconds{2}).count() == 0);
  batch.seat_joined();
  batch.rebuilds(stream_id{prefill_streams}, true);
  CHECK_FALSE(batch.rows_are_known());
  batch.ran(milliseconds{10}, milliseconds{4});
  CHECK(batch.rest(milliseconds{10}) == milliseconds{12});
  batch.rebuilds(stream_id{prefill_streams}, false);
  CHECK(batch.rest(milliseconds{10}).count() == 0);
}

TEST_CASE("positions are those of the sequences that go on, with and without a row") {
  auto batch = seated({joining(1), joining(2)});
  launch(batch);
  commit(batch, {0, 1});
  batch.leave(seq(1), false);
  batch.join(joining(3), start);
  const std::vector<std::pair<sequence_id, uint32_t>> expected{{seq(2), 11}, {seq(3), 10}};
  CHECK(batch.positions() == expected);
}

namespace {

/// Sequences of random lengths in a pool that is too small for them, with joins, departures, drops
/// and grants in a random order. Every sequence must end with its number of tokens, and the pool
/// must be whole.
struct random_service {
  static constexpr uint32_t prompt = 10, window = 16;
  lamella::tests::splitmix random;
  slot_pool pool{200};
  decode_batch batch{{.growth = {.window = window}}};
  std::map<uint64_t, uint32_t> wanted, got; ///< tokens, by sequence
  std::map<uint64_t, std::vector<slot_run>> held;
  std::vector<uint64_t> waiting;
  std::vector<std::vector<uint32_t>> flights;
  std::vector<uint32_t> asking; ///< seats
  uint64_t preempted = 0;

  explicit random_service(uint64_t seed) : random{seed} {
    for (uint64_t n = 1; n <= 12; ++n) {
      wanted[n] = 2 + static_cast<uint32_t>(random.below(120));
      got[n] = 1;
      waiting.push_back(n);
    }
  }

  void admit() {
    std::sort(waiting.begin(), waiting.end());
    while (!waiting.empty()) {
      const auto n = waiting.front();
      auto runs = pool.take(prompt + got[n] + window);
      if (!runs) return;
      waiting.erase(waiting.begin());
      held[n] = *runs;
      batch.join({.sequence = seq(n),
                  .runs = *runs,
                  .position = prompt + got[n] - 1,
                  .generated = got[n],
                  .max_tokens = wanted[n]},
                 start);
    }
  }

  void settle_departures() {
    for (const auto& x : batch.depart()) {
      const auto n = static_cast<uint64_t>(x.sequence);
      pool.give_back(held.at(n));
      held.erase(n);
      if (x.evicted) waiting.push_back(n);
      preempted += x.evicted;
    }
    admit();
  }

  void answer_ask() {
    if (asking.empty()) return;
    const auto seat = asking.back();
    asking.pop_back();
    const auto sequence = batch.at(seat).of.sequence;
    if (auto runs = pool.take(window)) {
      append(held.at(static_cast<uint64_t>(sequence)), *runs);
      batch.granted(sequence, *runs);
    } else {
      batch.refused(sequence);
    }
  }

  void launch_next() {
    if (flights.empty())
      batch.seat_joined();
    else if (flights.size() > 1 || !batch.rows_are_known())
      return;
    const auto next = batch.next();
    asking.insert(asking.end(), next.growing.begin(), next.growing.end());
    if (next.rows.empty()) return;
    for (const auto seat : next.rows) {
      CHECK(batch.at(seat).next() < batch.at(seat).capacity);
      batch.launched(seat);
    }
    flights.push_back(next.rows);
  }

  void end_oldest() {
    if (flights.empty()) return;
    const auto rows = flights.front();
    flights.erase(flights.begin());
    batch.ran(start, milliseconds{1});
    for (const auto seat : rows) {
      const auto n = static_cast<uint64_t>(batch.at(seat).of.sequence);
      const auto made = batch.commit(seat, 5);
      if (!made.counts) continue;
      CHECK(made.index == got[n]);
      ++got[n];
      CHECK((made.reason == finish::length) == (got[n] == wanted[n]));
    }
  }

  void step() {
    switch (random.below(8)) {
    case 0:
      batch.drop();
      flights.clear();
      break;
    case 1:
    case 2:
      answer_ask();
      break;
    case 3:
    case 4:
      end_oldest();
      break;
    default:
      launch_next();
    }
    settle_departures();
  }
};

} // namespace

TEST_CASE("V-M15 in any order of events all tokens come once, and all slots come back") {
  uint64_t preempted = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    random_service service{seed};
    service.admit();
    for (int i = 0; i < 20'000 && service.batch.size() + service.waiting.size() > 0; ++i)
      service.step();
    CHECK(service.batch.size() == 0);
    CHECK(service.got == service.wanted);
    CHECK(service.pool.free() == 200);
    preempted += service.preempted;
  }
  CHECK(preempted > 0);
}
