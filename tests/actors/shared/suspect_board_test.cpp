// What is known of requests that may kill workers: who was in flight where, and how the worker
// ended, in whatever order that is told.
#include "actors/protocol/values.hpp"
#include "actors/shared/suspect_board.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

using verdict = suspect_board::verdict;
using budget = suspect_board::budget;

constexpr request_id id(uint64_t x) { return request_id{x}; }
constexpr stream_id first{0}, second{1};

struct board : suspect_board {
  int changes = 0;
  board() {
    on_change([this] { ++changes; });
  }
  /// Request x runs in that epoch.
  void run(uint64_t x, uint64_t epoch, stream_id where = first, uint32_t tokens = 5) {
    runs(scheduler::sequence_of(id(x), 0), epoch, where, tokens);
  }
};

} // namespace

TEST_CASE("An end blames who ran on the worker's streams in its epoch, and nobody else") {
  board x;
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    for (uint64_t r : {1, 2}) x.run(r, epoch, first);
    x.run(3, epoch, second);
    x.run(4, epoch - 1, first);
    x.lost({100, epoch, {first}});
    CHECK(x.ended(100, true) == (epoch == 1 ? budget::counts : budget::excused));
  }
  CHECK(x.hunting());
  CHECK(x.of(id(1)) == verdict::apart);
  CHECK(x.of(id(2)) == verdict::wait);
  CHECK(x.of(id(3)) == verdict::free);
  CHECK(x.of(id(4)) == verdict::free);
}

TEST_CASE("The keeper may be quicker than the membership") {
  board x;
  x.run(1, 1);
  CHECK(x.ended(100, true) == budget::counts);
  x.lost({100, 1, {first}});
  x.run(1, 2);
  CHECK(x.ended(101, true) == budget::counts); // who was there is not known yet
  CHECK(x.of(id(1)) == verdict::free);
  x.lost({101, 2, {first}});
  CHECK(x.of(id(1)) == verdict::poisonous);
  CHECK(x.take_forgiveness());
  CHECK_FALSE(x.take_forgiveness());
}

TEST_CASE("Nobody is blamed for an end from outside, or one that nobody can tell of") {
  board x;
  for (uint64_t epoch = 1; epoch < 20; ++epoch) {
    x.run(1, epoch);
    x.lost({100, epoch, {first}});
    CHECK(x.ended(100, false) == budget::counts);
    CHECK(x.of(id(1)) == verdict::free);
  }
}

TEST_CASE("Two workers that end in one run are one end") {
  board x;
  x.run(1, 1);
  for (uint32_t pid : {100, 101}) x.lost({pid, 1, {first}});
  for (uint32_t pid : {100, 101}) CHECK(x.ended(pid, true) == budget::counts);
  CHECK(x.of(id(1)) == verdict::free);
}

TEST_CASE("Whoever was in an end before waits until the cause of the next one is known") {
  board x;
  x.run(1, 1);
  x.lost({100, 1, {first}});
  CHECK(x.of(id(1)) == verdict::free); // the first one delays nobody
  x.ended(100, true);
  x.run(1, 2);
  x.run(2, 2);
  x.lost({100, 2, {first}});
  CHECK(x.of(id(1)) == verdict::wait);
  CHECK(x.of(id(2)) == verdict::free);
  const auto before = x.changes;
  SUBCASE("it was no fault of its own") {
    x.ended(100, false);
    CHECK(x.of(id(1)) == verdict::free);
  }
  SUBCASE("it was") {
    x.ended(100, true);
    CHECK(x.of(id(1)) == verdict::apart);
  }
  CHECK(x.changes == before + 1);
}

TEST_CASE("A request is where its sequence with the fewest tokens is") {
  board x;
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    x.run(1, epoch, first, 7);
    // Its sister went on meanwhile.
    x.runs(scheduler::sequence_of(id(1), 1), epoch, first, 10 + 30 * static_cast<uint32_t>(epoch));
    x.lost({100, epoch, {first}});
    CHECK(x.ended(100, true) == (epoch == 1 ? budget::counts : budget::explained));
  }
  CHECK(x.of(id(1)) == verdict::poisonous);
  x.over(id(1));
  CHECK(x.of(id(1)) == verdict::free);
}

TEST_CASE("Tokens make suspects free again, and that is told") {
  board x;
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    for (uint64_t r : {1, 2}) x.run(r, epoch);
    x.lost({100, epoch, {first}});
    x.ended(100, true);
  }
  x.run(1, 3);
  const auto before = x.changes;
  for (uint32_t t = 6; t < 13; ++t) x.has(scheduler::sequence_of(id(1), 0), t);
  CHECK(x.of(id(1)) == verdict::apart);
  CHECK(x.changes == before);
  x.has(scheduler::sequence_of(id(1), 0), 13);
  CHECK(x.of(id(1)) == verdict::free);
  CHECK(x.of(id(2)) == verdict::apart);
  CHECK(x.changes == before + 1);
  x.over(id(2));
  CHECK_FALSE(x.hunting());
  CHECK(x.changes == before + 2);
}

TEST_CASE("A test does not last as long as a reader likes") {
  using pause = suspect_board::pause;
  board x;
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    for (uint64_t r : {1, 2}) x.run(r, epoch);
    x.lost({100, epoch, {first}});
    x.ended(100, true);
  }
  x.run(1, 3);
  const auto sister = scheduler::sequence_of(id(1), 1);
  x.runs(sister, 3, first, 5);
  SUBCASE("it steps back for others") {
    x.stopped(scheduler::sequence_of(id(1), 0), pause::brief);
    x.stopped(sister, pause::brief);
    CHECK(x.of(id(1)) == verdict::apart);
  }
  SUBCASE("it steps back for its reader") {
    x.stopped(sister, pause::reader);
    CHECK(x.of(id(1)) == verdict::apart); // the other choice runs on
    x.stopped(scheduler::sequence_of(id(1), 0), pause::reader);
    CHECK(x.of(id(1)) == verdict::free);
    CHECK(x.of(id(2)) == verdict::apart);
    x.run(1, 4);
    x.lost({100, 4, {first}});
    x.ended(100, true);
    CHECK(x.of(id(1)) == verdict::wait); // behind the other one
  }
  SUBCASE("all its tokens are drawn") {
    for (auto s : {sister, scheduler::sequence_of(id(1), 0)}) x.stopped(s, pause::done);
    CHECK(x.of(id(1)) == verdict::free);
    CHECK(x.of(id(2)) == verdict::apart);
  }
}

TEST_CASE("The pipeline of this process blames all that ran in it") {
  board x;
  CHECK(x.ended_here() == budget::counts);
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    x.run(1, epoch, first);
    x.run(2, epoch, second);
    CHECK(x.ended_here() == (epoch == 1 ? budget::counts : budget::excused));
  }
  CHECK(x.of(id(1)) == verdict::apart);
  CHECK(x.of(id(2)) == verdict::wait);
}

} // namespace lamella::actors::test
