#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

struct world : stage {
  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();
  std::vector<attention_shard_actor> shards;
  kv_allocator_actor allocator;
  uint64_t epoch = 0;

  explicit world(uint32_t slots = 100, uint32_t tables = 1, bool parity = false) {
    kv_allocator_config c;
    for (uint32_t i = 0; i < tables; ++i)
      c.tables.list.push_back({{"attention-" + std::to_string(i)}, slots});
    if (parity) c.tables.list = {{{"attention-0", "attention-1"}, slots, "attention-2", true}};
    shards = {spawn(stand_in_shard(shard)), spawn(stand_in_shard(shard))};
    if (parity) shards.push_back(spawn(stand_in_shard(shard)));
    allocator = spawn(kv_allocator, std::move(c));
    adopt({0, 1});
  }

  /// The next epoch, in which some tables have lost what they held.
  void adopt(std::vector<uint32_t> lost) {
    caf::anon_send(allocator, kv_adopt{++epoch, shards, {std::move(lost)}});
    settle();
  }

  std::shared_ptr<reply<kv_grant>> reserve(std::vector<kv_need> needs, uint32_t keep_free = 0,
                                           bool tell = false) {
    auto answer = ask<kv_grant>(allocator, kv_reserve{std::move(needs), keep_free, tell, epoch});
    settle();
    return answer;
  }
  void release(std::vector<sequence_id> holders) {
    caf::anon_send(allocator, kv_release{std::move(holders), epoch});
    settle();
  }
  uint32_t with_parity() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value.parity;
  }
  std::vector<uint32_t> used() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value.used;
  }
};

} // namespace

TEST_CASE("V-M11 the allocator grants all of the needs or none") {
  world w;
  REQUIRE_FALSE(w.reserve({{seq(1), 60, {}, 0}})->error);
  const auto refused = w.reserve({{seq(2), 30, {}, 0}, {seq(3), 30, {}, 0}});
  CHECK(refused->error == ec::kv_exhausted);
  CHECK(w.used() == std::vector<uint32_t>{60});
  // What was tried left no trace: the same holders can have all that is there.
  const auto granted = w.reserve({{seq(2), 20, {}, 0}, {seq(3), 20, {}, 0}});
  REQUIRE_FALSE(granted->error);
  CHECK(granted->value.holdings.size() == 2);
  CHECK(w.used() == std::vector<uint32_t>{100});
}

TEST_CASE("V-M11 a refused growth keeps what the holder had") {
  world w;
  w.reserve({{seq(1), 50, {}, 0}, {seq(2), 40, {}, 0}});
  const auto refused = w.reserve({{seq(1), 5, {}, 0}, {seq(2), 6, {}, 0}});
  CHECK(refused->error == ec::kv_exhausted);
  CHECK(w.used() == std::vector<uint32_t>{90});
  w.release({seq(1)});
  CHECK(w.used() == std::vector<uint32_t>{40});
  w.release({seq(2)});
  CHECK(w.used() == std::vector<uint32_t>{0});
}

TEST_CASE("V-M12 choices share the slots of their prompt until the last one lets go") {
  world w;
  const auto granted = w.reserve(
      {{seq(1, 0), 40, {}, 0}, {seq(1, 1), 5, seq(1, 0), 30}, {seq(1, 2), 5, seq(1, 0), 30}});
  REQUIRE_FALSE(granted->error);
  CHECK(w.used() == std::vector<uint32_t>{50});
  const auto& first = granted->value.holdings[0].runs;
  const auto& second = granted->value.holdings[1].runs;
  CHECK(scheduler::prefix(first, 30) == scheduler::prefix(second, 30));
  CHECK(scheduler::length_of(second) == 35);
  w.release({seq(1, 0)});
  CHECK(w.used() == std::vector<uint32_t>{40});
  w.release({seq(1, 2), seq(1, 1)});
  CHECK(w.used() == std::vector<uint32_t>{0});
}

TEST_CASE("I5 references are counted on both sides: by the slots, and by who holds them") {
  world w;
  const auto usage = [&] {
    auto answer = w.ask<kv_usage>(w.allocator, status_atom_v);
    w.settle();
    return answer->value;
  };
  REQUIRE_FALSE(w.reserve({{seq(1), 30}, {seq(1, 1), 4, seq(1), 20}})->error);
  auto x = usage();
  CHECK(x.free == 66);
  CHECK(x.used == std::vector<uint32_t>{34});
  CHECK(x.references == 54);
  CHECK(x.held == 54);
  w.adopt({}); // whose holders have not come yet
  w.release({seq(1)});
  x = usage();
  CHECK(x.free + x.used.front() == 100);
  CHECK(x.references == 24);
  CHECK(x.held == 24);
  w.release({seq(1, 1)});
  x = usage();
  CHECK(x.free == 100);
  CHECK(x.references == 0);
  CHECK(x.held == 0);
}

TEST_CASE("V-M12 a share of nobody is refused; releasing strangers changes nothing") {
  world w;
  CHECK(w.reserve({{seq(1), 5, seq(9), 10}})->error == ec::kv_exhausted);
  w.release({seq(7)});
  CHECK(w.used() == std::vector<uint32_t>{0});
}

TEST_CASE("V-M11 slots are kept free when asked for") {
  world w;
  CHECK(w.reserve({{seq(1), 91, {}, 0}}, 10)->error == ec::kv_exhausted);
  CHECK_FALSE(w.reserve({{seq(1), 90, {}, 0}}, 10)->error);
}

TEST_CASE("V-M11 request partition places holders on the emptiest table and keeps them there") {
  world w{100, 2};
  const auto a = w.reserve({{seq(1), 30, {}, 0}});
  const auto b = w.reserve({{seq(2), 50, {}, 0}});
  CHECK(a->value.holdings[0].member != b->value.holdings[0].member);
  const auto c = w.reserve({{seq(1), 60, {}, 0}});
  CHECK(c->value.holdings[0].member == a->value.holdings[0].member);
  const auto d = w.reserve({{seq(3), 1, seq(2), 40}});
  CHECK(d->value.holdings[0].member == b->value.holdings[0].member);
  CHECK(w.reserve({{seq(1), 11, {}, 0}})->error == ec::kv_exhausted); // though the other has room
}

TEST_CASE("L-M26 the usage says how many slots have a parity, and none where nobody holds it") {
  world w{100, 1, true};
  CHECK(w.with_parity() == 0);
  w.reserve({{seq(1), 60, {}, 0}});
  CHECK(w.with_parity() == 60);
  w.shards.pop_back();
  kv_adopt x{++w.epoch, w.shards, {}};
  x.takes.tables = {{{{"attention-0", "attention-1"}, 100, "attention-2", false}}};
  caf::anon_send(w.allocator, x);
  w.settle();
  CHECK(w.used() == std::vector<uint32_t>{60});
  CHECK(w.with_parity() == 0);
  world without;
  without.reserve({{seq(1), 60, {}, 0}});
  CHECK(without.with_parity() == 0);
}

TEST_CASE("L-M23 L-M26 tables have parity each on their own") {
  world w{100, 2};
  REQUIRE_FALSE(w.reserve({{seq(1), 30, {}, 0}})->error);
  REQUIRE_FALSE(w.reserve({{seq(2), 50, {}, 0}})->error);
  CHECK(w.used() == std::vector<uint32_t>{30, 50});
  kv_adopt x{++w.epoch, w.shards, {}};
  x.takes.parity_is_new = {1};
  x.takes.tables = {{{{"attention-0"}, 100}, {{"attention-1"}, 100, "attention-2", true}}};
  caf::anon_send(w.allocator, x);
  w.settle();
  CHECK(w.with_parity() == 0); // none of the second table has it yet
  for (const uint64_t holder : {1, 2})
    w.reserve({{seq(holder), 0, {}, 0, reserve_mode::extend, 20}});
  const kv_sweep first{w.epoch, {seq(9), {}, 0, 100, true, 0}},
      second{w.epoch, {seq(9), {}, 0, 100, true, 1}};
  auto none = w.ask<kv_swept>(w.allocator, first);
  auto some = w.ask<kv_swept>(w.allocator, second);
  w.settle();
  CHECK(none->value.runs.empty());
  CHECK(scheduler::length_of(some->value.runs) == 20);
  auto done = w.ask<bool>(w.allocator, kv_protection{w.epoch, some->value.runs, true, 1});
  w.settle();
  CHECK(done->value);
  CHECK(w.with_parity() == 20);
  auto what = w.ask<kv_inventory>(w.allocator, kv_inventory_ask{1});
  w.settle();
  CHECK(scheduler::length_of(what->value.runs) == 20);
  kv_adopt y{++w.epoch, w.shards, {}};
  y.takes.rebuilt = {1};
  caf::anon_send(w.allocator, y);
  w.settle();
  CHECK(w.used() == std::vector<uint32_t>{30, 0}); // its holder had slots without parity
}

TEST_CASE("V-M11 freed slots are told to those who were refused and asked to be told, once") {
  world w;
  w.reserve({{seq(1), 100, {}, 0}});
  const auto told = w.reserve({{seq(2), 10, {}, 0}}, 0, true);
  const auto silent = w.reserve({{seq(3), 10, {}, 0}}, 0, false);
  CHECK(told->freed == 0);
  w.release({seq(1)});
  CHECK(told->freed == 1);
  CHECK(silent->freed == 0);
  w.reserve({{seq(2), 10, {}, 0}});
  w.release({seq(2)});
  CHECK(told->freed == 1);
}

TEST_CASE("An empty pool is trimmed after a second, and reservations wait for the trim") {
  world w;
  w.shard->holds_trims = true;
  w.reserve({{seq(1), 64, {}, 0}});
  w.release({seq(1)});
  w.advance(990ms, 10ms);
  CHECK(w.shard->trims == 0);
  w.advance(20ms, 10ms);
  REQUIRE(w.shard->trims == 2);
  const auto waiting = w.reserve({{seq(2), 10, {}, 0}});
  CHECK_FALSE(waiting->came);
  w.shard->trimming[0].deliver(true);
  w.settle();
  CHECK_FALSE(waiting->came); // the other shard still trims
  w.shard->trimming[1].deliver(true);
  w.settle();
  REQUIRE(waiting->came);
  CHECK_FALSE(waiting->error);
  CHECK(w.used() == std::vector<uint32_t>{10});
}

TEST_CASE("What a canary used is not worth a trim") {
  world w;
  w.reserve({{seq(1), 33, {}, 0}});
  w.release({seq(1)});
  w.advance(5s, 100ms);
  CHECK(w.shard->trims == 0);
}

TEST_CASE("A pool in use is not trimmed, and a shard that does not answer holds nobody for ever") {
  world w;
  w.shard->holds_trims = true;
  w.reserve({{seq(1), 64, {}, 0}});
  w.release({seq(1)});
  w.advance(500ms, 10ms);
  w.reserve({{seq(2), 64, {}, 0}});
  w.advance(2s, 10ms);
  CHECK(w.shard->trims == 0);
  w.release({seq(2)});
  w.advance(1010ms, 10ms);
  REQUIRE(w.shard->trims == 2);
  const auto waiting = w.reserve({{seq(3), 10, {}, 0}}, 0, true);
  w.advance(11s, 100ms);
  CHECK(waiting->came);
  CHECK_FALSE(waiting->error);
}

TEST_CASE("L-M25 what no shard has lost goes on in the next epoch, grown to what is needed now") {
  world w;
  const auto before = w.reserve({{seq(1), 20, {}, 0}, {seq(2), 20, {}, 0}});
  REQUIRE_FALSE(before->error);
  w.adopt({});
  CHECK(w.used() == std::vector<uint32_t>{40});
  const auto on = w.reserve({{seq(1), 30, {}, 0, reserve_mode::resume}});
  REQUIRE_FALSE(on->error);
  const auto& holding = on->value.holdings.at(0);
  CHECK(holding.kept);
  CHECK(scheduler::length_of(holding.runs) == 30);
  CHECK(holding.runs.front().first == before->value.holdings.at(0).runs.front().first);
  // One that needs no more than it has gets it even where nothing is free.
  REQUIRE_FALSE(w.reserve({{seq(3), 50, {}, 0, reserve_mode::fresh}})->error);
  const auto full = w.reserve({{seq(2), 10, {}, 0, reserve_mode::resume}}, 30);
  REQUIRE_FALSE(full->error);
  CHECK(full->value.holdings.at(0).kept);
  CHECK(scheduler::length_of(full->value.holdings.at(0).runs) == 20);
}

TEST_CASE("L-M26 a lost shard takes the KV of the whole pool with it, or that of its requests") {
  for (uint32_t tables : {1u, 2u}) {
    CAPTURE(tables);
    world w{100, tables};
    w.reserve({{seq(1), 20, {}, 0}});
    w.reserve({{seq(2), 30, {}, 0}}); // by request: in the other table, which has more room
    w.adopt({tables - 1});
    CHECK(w.used() == (tables == 1 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{20, 0}));
    const auto first = w.reserve({{seq(1), 20, {}, 0, reserve_mode::resume}});
    const auto second = w.reserve({{seq(2), 30, {}, 0, reserve_mode::resume}});
    REQUIRE_FALSE(first->error);
    REQUIRE_FALSE(second->error);
    CHECK(first->value.holdings.at(0).kept == (tables == 2));
    CHECK_FALSE(second->value.holdings.at(0).kept);
    CHECK(scheduler::length_of(second->value.holdings.at(0).runs) == 30);
  }
}

TEST_CASE("L-M25 who does not come for its KV loses it, and who begins anew gets other slots") {
  world w;
  w.reserve({{seq(1), 20, {}, 0}, {seq(2), 20, {}, 0}, {seq(3), 20, {}, 0}});
  w.adopt({});
  w.reserve({{seq(1), 20, {}, 0, reserve_mode::resume}});
  const auto fresh = w.reserve({{seq(2), 10, {}, 0, reserve_mode::fresh}});
  REQUIRE_FALSE(fresh->error);
  CHECK_FALSE(fresh->value.holdings.at(0).kept);
  CHECK(w.used() == std::vector<uint32_t>{50});
  const auto waiting = w.reserve({{seq(4), 60, {}, 0}}, 0, true);
  CHECK(waiting->error == ec::kv_exhausted);
  w.advance(6s, 1s);
  CHECK(w.used() == std::vector<uint32_t>{30});
  CHECK_FALSE(w.reserve({{seq(4), 60, {}, 0}})->error);
}

TEST_CASE("reliability A3: an epoch that is over can neither take nor give back slots") {
  world w;
  w.reserve({{seq(1), 20, {}, 0}});
  w.adopt({});
  w.reserve({{seq(1), 20, {}, 0, reserve_mode::resume}});
  const auto late = w.ask<kv_grant>(w.allocator, kv_reserve{{{seq(1), 5, {}, 0}}, 0, false, 1});
  caf::anon_send(w.allocator, kv_release{{seq(1)}, 1});
  w.settle();
  CHECK(late->error == ec::aborted);
  CHECK(w.used() == std::vector<uint32_t>{20});
}

} // namespace lamella::actors::test
