// MEMBERSHIP on virtual time: workers that are slower than the others of their role.
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/shared/parity_whole.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

constexpr scheduler::seat model_0{worker_role::model, 0}, shard_1{worker_role::attention, 1};

/// Two replicas, of so many seats, and two shards; workers are looked at each second.
void two_replicas(membership_config& m, uint32_t seats) {
  m.seats = {};
  m.seats.add(worker_role::model, seats);
  m.seats.add(worker_role::attention, 2);
  m.shape.replicas = 2;
  m.shape.prefill_seats = 0;
  m.poll_interval = 1s;
}

/// For two looks, those have taken `times` as long as the others, for 30 iterations of 8 rows each.
void work(membership_world& w, const std::vector<membership_world::process*>& all,
          const membership_world::process* late, uint64_t times) {
  for (int look = 0; look < 2; ++look) {
    for (auto* x : all) {
      x->book->work.iterations += 30;
      x->book->work.units += 30 * 8;
      x->book->work.busy_ns += 30 * 1'000'000 * (x == late ? times : 1);
    }
    w.advance(1s, 100ms);
  }
}

/// The parity of the only cell is complete in that epoch.
void tell_whole(membership_world& w, uint64_t epoch) {
  caf::anon_send(caf::actor_cast<caf::actor>(w.members), parity_whole_atom_v, epoch, uint32_t{0});
  w.settle();
}

} // namespace

TEST_CASE("A2 model replica, slow: DRAIN, a spare takes its part, and it comes back as the spare") {
  membership_world w{[](membership_config& m) { two_replicas(m, 3); }};
  w.want_epoch();
  std::vector<membership_world::process> models(3);
  std::vector<membership_world::process*> all;
  uint32_t pid = 40;
  for (auto& x : models) {
    w.pid = ++pid;
    x = w.join("model");
    all.push_back(&x);
  }
  auto a0 = w.join("attention"), a1 = w.join("attention");
  REQUIRE(w.opened.size() == 1);
  CHECK(w.opened[0].replicas.size() == 2);
  work(w, all, all[0], 2); // late, and not that late
  CHECK(w.slow.empty());
  CHECK(w.lost.empty());
  all.pop_back(); // the spare has nothing to do
  work(w, all, all[0], 5);
  REQUIRE(w.lost.size() == 1);
  CHECK(says(w.lost[0].second, "model/0 lost: it is slow, and a spare takes its part"));
  CHECK(models[0].book->left.size() == 1);
  w.want_epoch();
  REQUIRE(w.opened.size() == 2);
  CHECK(models[1].book->opened == std::vector<uint64_t>{1, 2});
  CHECK(models[2].book->opened == std::vector<uint64_t>{2});
  // The same process again: it sits, and has no part as long as there are others.
  w.pid = 41;
  auto again = w.join("model");
  CHECK(again.grant->index == 0);
  CHECK(w.slow == std::set<scheduler::seat>{model_0});
  CHECK(w.lost.size() == 1);
  w.pid = 50;
  w.end(a0.worker);
  w.want_epoch();
  w.join("attention");
  REQUIRE(w.opened.size() == 3);
  CHECK(again.book->opened.empty());
  // Better a slow one than none.
  w.end(models[1].worker);
  w.want_epoch();
  REQUIRE(w.opened.size() == 4);
  CHECK(w.opened[3].replicas.size() == 2);
  CHECK(again.book->opened == std::vector<uint64_t>{4});
}

TEST_CASE(
    "A2 model replica, slow: kept while the pipeline moves to another epoch, and replaced when "
    "that has settled") {
  for (const bool taken : {true, false}) {
    CAPTURE(taken);
    membership_world w{[](membership_config& m) { two_replicas(m, 4); }};
    w.want_epoch();
    std::vector<membership_world::process> models(4);
    uint32_t pid = 40;
    for (auto& x : models) {
      w.pid = ++pid;
      x = w.join("model");
    }
    w.join("attention");
    w.join("attention");
    REQUIRE(w.opened.size() == 1);
    w.ask<pool_change>(w.members, worker_drain{"model/1", false});
    w.settle();
    w.want_next();
    REQUIRE(w.opened.size() == 2);
    CHECK(w.opened[1].beside == 1);
    work(w, {&models[0], &models[taken ? 2 : 1]}, &models[0], 5);
    CHECK(w.slow == std::set<scheduler::seat>{model_0});
    CHECK(w.lost.empty());
    w.settled(taken);
    REQUIRE(w.lost.size() == 1);
    CHECK(says(w.lost[0].second, "model/0 lost: it is slow, and a spare takes its part"));
  }
}

TEST_CASE("A2 model replica, slow: kept while a pool grows, and replaced when it has grown") {
  membership_world w{[](membership_config& m) {
    two_replicas(m, 3);
    m.design_of = [](const scheduler::pool_sizes& x) {
      epoch_design design;
      design.shape.replicas = x.model;
      design.shape.shards = x.attention;
      design.shape.prefill_seats = x.prefill;
      design.pool.layout.cells = {{x.attention, 100}};
      return design;
    };
  }};
  w.want_epoch();
  std::vector<membership_world::process> models(3);
  for (auto& x : models) x = w.join("model");
  w.join("attention");
  w.join("attention");
  REQUIRE(w.opened.size() == 1);
  w.ask<pool_change>(w.members, pool_resize{"attention", 3});
  w.settle();
  w.join("attention");
  w.want_next();
  REQUIRE(w.opened.size() == 2);
  CHECK(w.opened[1].beside == 1);
  work(w, {&models[0], &models[1]}, &models[0], 5);
  CHECK(w.slow == std::set<scheduler::seat>{model_0});
  CHECK(w.lost.empty());
  w.settled();
  w.advance(1s, 100ms);
  REQUIRE(w.lost.size() == 1);
  CHECK(says(w.lost[0].second, "model/0 lost: it is slow, and a spare takes its part"));
}

TEST_CASE(
    "A2 model replica, slow: kept for a while behind another one, or until there is a spare") {
  membership_world w{[](membership_config& m) { two_replicas(m, 4); }};
  w.want_epoch();
  std::vector<membership_world::process> models(4);
  uint32_t pid = 40;
  const auto join = [&](size_t i) {
    w.pid = ++pid;
    models[i] = w.join("model");
  };
  join(0);
  join(1);
  w.join("attention");
  w.join("attention");
  REQUIRE(w.opened.size() == 1);
  work(w, {&models[0], &models[1]}, &models[0], 5);
  CHECK(w.lost.empty()); // no spare
  join(2);
  join(3);
  w.advance(1s, 100ms);
  REQUIRE(w.lost.size() == 1);
  w.want_epoch();
  REQUIRE(w.opened.size() == 2);
  work(w, {&models[1], &models[2]}, &models[1], 5);
  CHECK(w.slow.contains({worker_role::model, 1}));
  CHECK(w.lost.size() == 1); // the second one within a minute
  w.advance(1min, 1s);
  REQUIRE(w.lost.size() == 2);
  CHECK(says(w.lost[1].second, "model/1 lost: it is slow, and a spare takes its part"));
}

TEST_CASE("A2 model replica, slow: one that came back recovers, and is no more known as slow") {
  membership_world w{[](membership_config& m) { two_replicas(m, 3); }};
  w.want_epoch();
  std::vector<membership_world::process> models(3);
  uint32_t pid = 40;
  for (auto& x : models) {
    w.pid = ++pid;
    x = w.join("model");
  }
  w.join("attention");
  w.join("attention");
  work(w, {&models[0], &models[1]}, &models[0], 5);
  REQUIRE(w.lost.size() == 1);
  w.want_epoch();
  w.pid = 41;
  auto again = w.join("model");
  REQUIRE(w.slow == std::set<scheduler::seat>{model_0});
  w.end(models[1].worker);
  w.want_epoch();
  REQUIRE(again.book->opened.size() == 1); // better a slow one than none
  work(w, {&again, &models[2]}, &again, 3);
  CHECK(w.slow.contains(model_0)); // not well yet
  work(w, {&again, &models[2]}, nullptr, 1);
  CHECK(w.slow.empty());
  w.end(again.worker);
  w.want_epoch();
  w.join("model");
  CHECK(w.slow.empty());
}

TEST_CASE(
    "A2 attention worker, slow: told, and kept where its KV would have to be computed again") {
  for (const bool parity : {false, true}) {
    CAPTURE(parity);
    membership_world w{[=](membership_config& m) {
      m.seats = {};
      m.seats.add(worker_role::model, 1);
      m.seats.add(worker_role::attention, 4); // a spare, and a parity or another spare
      m.shape.prefill_seats = 0;
      if (parity) m.shape.parity = {0};
      m.poll_interval = 1s;
    }};
    w.want_epoch();
    auto m = w.join("model");
    std::vector<membership_world::process> shards(4);
    std::vector<membership_world::process*> all;
    for (auto& x : shards) {
      x = w.join("attention");
      all.push_back(&x);
    }
    REQUIRE(w.opened.size() == 1);
    const auto seats = w.ask<system_status>(w.members, status_atom_v);
    w.settle();
    std::vector<std::string> parts;
    for (const auto& x : seats->value.workers) parts.push_back(x.part);
    CHECK(parts
          == std::vector<std::string>{"replica 0", "shard 0", "shard 1",
                                      parity ? "parity" : "spare", "spare"});
    all.resize(2);
    work(w, all, all[1], 10);
    if (parity) {
      CHECK(w.lost.empty()); // its parity is still being made
      tell_whole(w, 0);      // of an epoch that does not serve
      CHECK(w.lost.empty());
      tell_whole(w, 1);
      REQUIRE(w.lost.size() == 1);
      CHECK(says(w.lost[0].second, "attention/1 lost: it is slow, and a spare takes its part"));
      continue;
    }
    CHECK(w.lost.empty());
    CHECK(w.slow == std::set<scheduler::seat>{shard_1});
    const auto status = w.ask<system_status>(w.members, status_atom_v);
    w.settle();
    for (const auto& x : status->value.workers) CHECK(x.slow == (x.seat == "attention/1"));
    work(w, all, nullptr, 1);
    CHECK(w.slow.empty());
  }
}

} // namespace lamella::actors::test
