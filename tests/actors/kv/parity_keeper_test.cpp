// The parity of a pool is looked after while the pool serves: what is wrong is found, told of and
// made again, what is missing is made, and rows that may still be written are left alone.
#include "actors/kv/kv_remake.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/pulls.hpp"
#include "tests/actors/kv/parity_pool.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

constexpr uint64_t fast = 1 << 20;

} // namespace

TEST_CASE("A6 scrubber: a byte that changed at any member is found, counted and protected again") {
  for (uint32_t member = 0; member <= parity_pool::shards_count; ++member) {
    CAPTURE(member);
    parity_pool p;
    p.open(false);
    const auto runs = p.hold(1, 40, 40);
    p.write(runs);
    p.keep(fast);
    p.pass(1s);
    CHECK(p.metric("lamella_parity_checked_slots_total") >= 40);
    CHECK(p.metric("lamella_parity_mismatches_total") == 0);
    const auto slot = runs.front().first + 17;
    const std::vector<std::byte> before{p.row(3, 1, slot), p.row(3, 1, slot) + p.row_bytes};
    p.flip(member, slot);
    REQUIRE(p.unlike(runs) == 1);
    uint32_t least = 40;
    double lag = 0;
    CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 0);
    for (int i = 0; i < 200; ++i) {
      p.sched.advance_time(10ms);
      p.settle(); // before anything is copied
      least = std::min(least, p.with_parity());
      CHECK(p.inventory() == p.with_parity());
      lag = std::max(lag, p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}"));
      p.work();
    }
    CHECK(least == 39); // told of, and not yet made again
    CHECK(lag == 1);
    CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 0);
    CHECK(p.metric("lamella_parity_mismatches_total") == 1);
    CHECK(p.metric("lamella_kv_integrity_failures_total{where=\"rest\"}") == 1);
    CHECK(p.metric("lamella_kv_integrity_failures_total{where=\"rebuild\"}") == 0);
    CHECK(p.metric("lamella_parity_rebuilt_slots_total") == 1);
    CHECK(p.unlike(runs) == 0);
    CHECK(p.with_parity() == 40);
    // A wrong parity is what it was; a wrong shard is kept, and protected, as it is.
    const std::vector<std::byte> after{p.row(3, 1, slot), p.row(3, 1, slot) + p.row_bytes};
    CHECK((after == before) == (member == 3));
  }
}

TEST_CASE("A6 scrubber: rows that are not there for good are neither read nor written") {
  parity_pool p;
  p.open(false);
  const auto mine = p.hold(1, 40, 25);
  p.write(mine, false); // all of them wrong, as after an attempt that was given up
  p.write(scheduler::prefix(mine, 25));
  const auto free = std::vector<slot_run>{{60, 20}};
  p.write(free, false);
  p.keep(fast);
  p.pass(2s);
  CHECK(p.metric("lamella_parity_checked_slots_total") >= 25);
  CHECK(p.metric("lamella_parity_mismatches_total") == 0);
  CHECK(p.unlike(mine) == 15);
  CHECK(p.unlike(free) == 20);
  p.say(1, 26); // one more is there for good: now it counts
  p.pass(1s);
  CHECK(p.metric("lamella_parity_mismatches_total") == 1);
  CHECK(p.unlike(mine) == 14);
}

TEST_CASE("I9 rows of a rebuilt member are compared with what they were before the loss") {
  for (const bool well : {true, false}) {
    CAPTURE(well);
    parity_pool p;
    p.open(false);
    const auto mine = p.hold(1, 40, 40);
    p.write(mine);
    p.keep(fast);
    p.pass(1s);
    CHECK(p.metric("lamella_kv_digests_compared_total") == 0);
    p.open(false, true);
    if (!well) { // the rebuild went wrong, and nothing of the XOR shows it
      p.flip(1, mine.front().first + 5);
      p.flip(3, mine.front().first + 5);
      REQUIRE(p.unlike(mine) == 0);
    }
    REQUIRE(p.go_on(1, 40, 40));
    p.keep(fast);
    p.pass(1s);
    CHECK(p.metric("lamella_kv_digests_compared_total") == 40); // once, not at each look
    CHECK(p.metric("lamella_kv_integrity_failures_total{where=\"rebuild\"}") == (well ? 0 : 1));
    CHECK(p.metric("lamella_kv_integrity_failures_total{where=\"rest\"}") == 0);
    CHECK(p.digests->losses() == (well ? 0 : 1));
  }
}

TEST_CASE("A6 scrubber: it reads no more in a second than it may") {
  for (const uint64_t slots_per_second : {10, 64}) {
    CAPTURE(slots_per_second);
    parity_pool p;
    p.open(false);
    p.write(p.hold(1, 90, 90));
    p.keep(slots_per_second * p.slot_bytes);
    p.pass(20s);
    const auto checked = p.metric("lamella_parity_checked_slots_total");
    CHECK(checked > 0.8 * 20 * static_cast<double>(slots_per_second));
    CHECK(checked <= 20 * static_cast<double>(slots_per_second) + 16); // the first chunk
  }
  parity_pool never;
  never.open(false);
  never.write(never.hold(1, 90, 90));
  never.keep(0);
  never.pass(5s);
  CHECK(never.metric("lamella_parity_checked_slots_total") == 0);
}

TEST_CASE("A6 scrubber: slots that are read stay where they are until they have been") {
  parity_pool p;
  p.open(false);
  p.write(p.hold(1, 40, 40));
  p.keep(fast);
  p.settle(); // the question is out, no device has moved
  p.release(1);
  CHECK(p.used() == 40);
  p.work();
  CHECK(p.used() == 0);
}

TEST_CASE("A6 the parity of a new member is made while rows are written, and of them alone is more "
          "there than before") {
  parity_pool p;
  p.open(false);
  const auto mine = p.hold(1, 50, 30), other = p.hold(2, 20, 20);
  p.write(mine);
  p.write(other);
  p.caches[3]->trim(); // another worker sits there now
  p.open(true);
  CHECK(p.used() == 70);
  CHECK(p.with_parity() == 0);
  CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 70);
  CHECK(p.inventory() == 0);
  p.keep(fast);
  p.pass(1s);
  CHECK(p.with_parity() == 0); // nobody has said what is there for good
  CHECK(p.go_on(1, 50, 33));
  CHECK(p.with_parity() == 17); // what comes behind is written with parity
  p.pass(1s);
  CHECK(p.with_parity() == 50);
  CHECK(p.unlike(scheduler::prefix(mine, 33)) == 0);
  CHECK(p.unlike(mine) == 17); // not touched: the sender writes these
  CHECK(p.unlike(other) == 20);
  CHECK(p.whole.empty());
  CHECK(p.go_on(2, 20, 20));
  p.pass(1s);
  CHECK(p.whole == std::vector{p.epoch}); // MEMBERSHIP may count on it
  CHECK(p.with_parity() == 70);
  CHECK(p.inventory() == 70);
  CHECK(p.unlike(other) == 0);
  CHECK(p.metric("lamella_parity_rebuilt_slots_total") == 53);
  CHECK(p.metric("lamella_parity_mismatches_total") == 0);
}

TEST_CASE(
    "A6 L-M25 a parity keeper whose pipeline hands over ends its copy and begins none: another "
    "one looks after the same slots then") {
  parity_pool p;
  p.open(false);
  const auto mine = p.hold(1, 40, 40);
  p.write(mine, false);
  p.open(true);
  CHECK(p.go_on(1, 40, 40));
  p.keep(fast);
  p.settle(); // the copy is under way, no device has moved
  const auto over = p.ask<bool>(p.keeper, hand_over{true});
  p.settle();
  CHECK_FALSE(over->came);
  CHECK(p.with_parity() == 0);
  p.work();
  REQUIRE(over->came);
  CHECK_FALSE(over->error);
  CHECK(p.with_parity() == 40);
  CHECK(p.unlike(mine) == 0);
  const auto checked = p.metric("lamella_parity_checked_slots_total");
  const auto other = p.hold(2, 20, 0);
  p.write(other, false);
  p.pulled(2, other, true); // as it would make next
  p.pass(3s);
  CHECK(p.unlike(other) == 20);
  CHECK(p.metric("lamella_parity_checked_slots_total") == checked);
  const auto again = p.ask<bool>(p.keeper, hand_over{true});
  p.settle();
  CHECK(again->came);
}

TEST_CASE("A6 sequences without parity lose their KV with a shard, the others keep it") {
  parity_pool p;
  p.open(false);
  p.hold(1, 10, 10);
  p.hold(2, 10, 10);
  p.open(true);
  CHECK(p.go_on(1, 10, 10));
  CHECK(p.go_on(2, 10, 10));
  p.hold(3, 10, 5); // written in this epoch
  p.keep(0, 1);
  while (p.with_parity() < 30) p.pass(10ms);
  p.open(true); // the parity is lost once more, and this time a shard before it is made
  CHECK(p.go_on(1, 10, 10));
  CHECK(p.go_on(2, 10, 10));
  CHECK(p.go_on(3, 10, 5));
  p.hold(4, 10, 5);
  CHECK(p.with_parity() == 5 + 10);
  CHECK(p.inventory() == 15);
  p.open(false, true);
  CHECK_FALSE(p.go_on(1, 10, 10));
  CHECK_FALSE(p.go_on(2, 10, 10));
  CHECK_FALSE(p.go_on(3, 10, 5));
  CHECK(p.go_on(4, 10, 5));
  CHECK(p.with_parity() == p.used());
}

TEST_CASE(
    "A6 what shards pull has no parity until it was made of it: who had none is computed again") {
  parity_pool p;
  p.open(false);
  const auto mine = p.hold(1, 40, 0), other = p.hold(2, 30, 30);
  p.write(other);
  const auto prompt = scheduler::prefix(mine, 32);
  p.pulled(1, prompt, false);
  p.write(prompt, false); // as a pull does
  CHECK(p.with_parity() == 8 + 30);
  CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 32);
  p.keep(fast);
  p.pass(1s);
  CHECK(p.unlike(prompt) == 32);                               // they may still be written
  CHECK(p.metric("lamella_parity_checked_slots_total") >= 30); // others are looked after meanwhile
  SUBCASE("a shard is lost before") {
    p.open(false, true);
    CHECK_FALSE(p.go_on(1, 40, 32));
    CHECK(p.go_on(2, 30, 30));
  }
  SUBCASE("a shard is lost afterwards") {
    p.pulled(1, prompt, true);
    p.pass(1s);
    CHECK(p.unlike(prompt) == 0);
    CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 0);
    CHECK(p.inventory() == 70);
    p.open(false, true);
    CHECK(p.go_on(1, 40, 32));
    CHECK(p.go_on(2, 30, 30));
  }
  SUBCASE("nobody wants it any more") {
    p.release(1);
    CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 0);
    p.pulled(1, prompt, false); // late
    CHECK(p.metric("lamella_kv_parity_lag_tokens{group=\"main\"}") == 0);
  }
}

TEST_CASE("A6 without a member for the parity nothing has it, and all lacks it afterwards") {
  parity_pool p;
  p.open(false);
  p.hold(1, 10, 10);
  p.open(false, false, false);
  CHECK(p.with_parity() == 0);
  CHECK(p.go_on(1, 20, 10));
  p.open(true);
  CHECK(p.with_parity() == 0);
  CHECK(p.go_on(1, 20, 15));
  CHECK(p.with_parity() == 5);
  p.release(1);
  CHECK(p.used() == 0);
  CHECK(p.with_parity() == 0);
  p.hold(2, 20, 10); // the same slots, for somebody else
  CHECK(p.with_parity() == 20);
}

TEST_CASE("A6 the parity is made in its share of the time") {
  parity_pool p;
  p.open(false);
  p.write(p.hold(1, 80, 80));
  p.caches[3]->trim();
  p.open(true);
  REQUIRE(p.go_on(1, 80, 80));
  p.keep(0, 50);
  // The copies take no virtual time, so neither does the rest after each.
  p.work();
  p.pass(50ms);
  CHECK(p.with_parity() == 80);
}

TEST_CASE("A6 a copy that fails while nobody is missed has the links made anew, a little later") {
  parity_pool p;
  p.open(false);
  p.write(p.hold(1, 40, 40));
  p.open(true);
  REQUIRE(p.go_on(1, 40, 40));
  caf::anon_send_exit(p.members[1], caf::exit_reason::kill);
  p.settle();
  p.keep(fast);
  p.work();
  CHECK(p.ended.empty());
  CHECK(p.with_parity() == 0);
  p.pass(400ms);
  REQUIRE(p.ended.size() == 1);
  CHECK(p.ended[0] == ec::link_cut);
}

TEST_CASE(
    "A6 rows that a member has got of another one, and that are others, are counted as damage") {
  stage s;
  const auto metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  const auto count = [&] {
    const std::string name = "\nlamella_kv_integrity_failures_total{where=\"rebuild\"} ";
    const auto page = metrics->scrape().body;
    return page.at(page.find(name) + name.size());
  };
  for (const bool same : {true, false}) {
    const auto target = std::make_shared<shard_book>();
    std::optional<remake_failure> failure{remake_failure{"not told"}};
    kv_remake what;
    what.members = {{0, s.spawn(stand_in_shard(std::make_shared<shard_book>()))},
                    {1, s.spawn(stand_in_shard(target))}};
    what.target = 1;
    what.runs = {{0, 4}};
    what.timeout = 1s;
    what.metrics = metrics;
    s.spawn([&](caf::event_based_actor* self) {
      remake(self, what, [&](const auto& told) { failure = told; });
    });
    s.settle();
    target->pulling.at(1).deliver(kv_moved{1, same ? 0u : 7u, 0}); // the other side says 0
    s.settle();
    REQUIRE(failure.has_value() != same);
    if (!same) CHECK(failure->differs);
    CHECK(count() == (same ? '0' : '1'));
  }
  s.end_all();
}

TEST_CASE("A6 a shard that cannot be asked keeps nobody from being checked later") {
  parity_pool p;
  p.open(false);
  p.write(p.hold(1, 40, 40));
  caf::anon_send_exit(p.members[1], caf::exit_reason::kill);
  p.settle();
  p.keep(fast);
  p.pass(5s);
  CHECK(p.ended.empty()); // whoever watches the workers ends the pipeline
  CHECK(p.metric("lamella_parity_checked_slots_total") == 0);
  p.release(1);
  CHECK(p.used() == 0);
}

} // namespace lamella::actors::test
