// MEMBERSHIP on virtual time: who gets a seat, when an epoch opens and ends, whose KV is lost.
#include "actors/machine/sizing.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

TEST_CASE_FIXTURE(membership_world,
                  "An epoch opens when everybody sits and the supervisor has asked") {
  want_epoch();
  auto m = join("model");
  auto a0 = join("attention");
  auto p = join("prefill");
  CHECK(*a0.result == "in");
  CHECK(opened.empty());
  CHECK(missing.back() == "attention/1");
  auto a1 = join("attention");
  REQUIRE(opened.size() == 1);
  CHECK(opened[0].epoch == 1);
  CHECK(opened[0].replicas.size() == 2); // the prefill seat is number 1
  CHECK(opened[0].shards.size() == 2);
  CHECK(a1.grant->terms.threads == 1); // its own terms
  const auto& order = m.book->orders.at(0);
  REQUIRE(order.replicas.size() == 2);
  CHECK(order.replicas[0].address == "at model");
  CHECK(order.replicas[1].address == "at prefill");
  CHECK(order.replicas[1].seat == "prefill/0");
  CHECK(order.shards[1].number == 0x4001); // what its frames say of it
  CHECK(order.shards[1].incarnation == 1);
  CHECK(order.number == 0);
  CHECK(p.book->orders.at(0).number == 1);
  CHECK(order.shards.size() == 2);
  CHECK(opened[0].empty == std::vector<uint32_t>{0, 1});
  CHECK(order.streams.size() == 2);
  auto late = join("attention");
  CHECK(says(*late.result, "the pool 'attention' is full: 2 of 2"));
  const auto status = ask<system_status>(members, status_atom_v);
  settle();
  CHECK(status->value.epoch == 1);
  REQUIRE(status->value.workers.size() == 4);
  for (const auto& w : status->value.workers) CHECK(w.peers.at(0).transport == "shm");
}

TEST_CASE_FIXTURE(membership_world,
                  "L-M26 the loss of a shard ends the epoch once, and its successor opens the "
                  "next; the others keep their KV") {
  want_epoch();
  auto m = join("model");
  auto a0 = join("attention");
  auto a1 = join("attention");
  auto p = join("prefill");
  REQUIRE(opened.size() == 1);
  end(a0.worker);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].first == 1);
  CHECK(says(lost[0].second, "attention/0"));
  CHECK(m.book->closed == std::vector<uint64_t>{1});
  end(p.worker); // a second one before the first is replaced: nothing is open any more
  CHECK(lost.size() == 1);
  want_epoch();
  auto a2 = join("attention");
  CHECK(a2.grant->index == 0);
  CHECK(a2.grant->incarnation == 2);
  REQUIRE(opened.size() == 2); // prompts run on the model replica meanwhile
  CHECK(opened[1].epoch == 2);
  CHECK(opened[1].replicas.size() == 1);
  CHECK(opened[1].empty == std::vector<uint32_t>{0});
  join("prefill"); // the epoch goes on serving until the next one has taken over
  REQUIRE(due.size() == 1);
  CHECK(says(due[0].second, "prefill/0 can be used"));
  CHECK(lost.size() == 1);
  want_next();
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == 2);
  CHECK(opened[2].replicas.size() == 2);
  CHECK(opened[2].empty.empty());
  CHECK(opened[2].lenders.empty()); // no KV has to move
  CHECK(m.book->closed == std::vector<uint64_t>{1});
  settled();
  CHECK(m.book->closed == std::vector<uint64_t>{1, 2});
  CHECK(m.book->opened == std::vector<uint64_t>{1, 2, 3});
  CHECK(a1.book->opened == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE_FIXTURE(membership_world,
                  "Who sits is not yet ready, and what is lacking is told with the loss") {
  using roles = std::vector<worker_role>;
  CHECK(lacking == roles{worker_role::model, worker_role::attention});
  want_epoch();
  auto m = join("model");
  auto a0 = join("attention");
  auto loads = join("attention", 77, false);
  CHECK(missing.back() == "prefill/0"); // it sits
  CHECK(ready == 2);
  CHECK(lacking == roles{worker_role::attention});
  end(loads.joiner);
  auto a1 = join("attention");
  auto p = join("prefill");
  CHECK(ready == 4);
  CHECK(lacking.empty());
  end(p.worker); // prompts run on the replica
  CHECK(ready == 3);
  CHECK(lacking.empty());
  end(m.worker);
  CHECK(lacking == roles{worker_role::model});
  auto again = join("model", 77, false);
  CHECK(lacking == roles{worker_role::model}); // it loads
}

TEST_CASE_FIXTURE(membership_world,
                  "L-M26 KV that was lost in an epoch nobody got is still told of") {
  want_epoch();
  auto m = join("model");
  auto a0 = join("attention");
  join("attention");
  join("prefill");
  REQUIRE(opened.size() == 1);
  end(a0.worker);
  want_epoch();
  m.book->silent = true;
  auto a2 = join("attention"); // opens epoch 2 with an empty cache, and the model never does
  CHECK(a2.book->opened == std::vector<uint64_t>{2});
  end(m.worker);
  CHECK(opened.size() == 1);
  join("model");
  REQUIRE(opened.size() == 2);
  CHECK(a2.book->opened == std::vector<uint64_t>{2, 3}); // it has kept that empty one
  CHECK(opened[1].empty == std::vector<uint32_t>{0});
}

TEST_CASE_FIXTURE(membership_world,
                  "L-M26 KV is lost as well if nobody has heard where it was begun anew") {
  want_epoch();
  auto m = join("model");
  auto a0 = join("attention");
  join("attention");
  auto p = join("prefill");
  REQUIRE(opened.size() == 1);
  SUBCASE("because the epoch was given up before the shard answered") {
    end(a0.worker);
    want_epoch();
    next_is_late = true;
    auto a2 = join("attention");
    end(m.worker);
    join("model");
    REQUIRE(opened.size() == 2);
    CHECK(a2.book->opened == std::vector<uint64_t>{2, 3});
    CHECK(opened[1].empty == std::vector<uint32_t>{0});
  }
  SUBCASE("because whoever was told has built nothing of it") {
    end(a0.worker);
    want_epoch();
    join("attention");
    REQUIRE(opened.size() == 2);
    CHECK(opened[1].empty == std::vector<uint32_t>{0});
    end(p.worker);
    want_epoch(1);
    REQUIRE(opened.size() == 3);
    CHECK(opened[2].empty == std::vector<uint32_t>{0});
    join("prefill");
    want_epoch(); // this time it was built
    REQUIRE(opened.size() == 4);
    CHECK(opened[3].empty.empty());
  }
}

TEST_CASE_FIXTURE(membership_world,
                  "L-M25 who joins while an epoch is being opened has a part in it") {
  want_epoch();
  join("model");
  auto a0 = join("attention");
  join("attention");
  auto p = join("prefill");
  REQUIRE(opened.size() == 1);
  end(p.worker);
  end(a0.worker);
  want_epoch();
  next_is_late = true;
  auto a2 = join("attention"); // epoch 2 waits for it
  CHECK(opened.size() == 1);
  auto again = join("prefill");
  REQUIRE(opened.size() == 2);
  CHECK(a2.book->opened == std::vector<uint64_t>{2, 3});
  CHECK(again.book->opened == std::vector<uint64_t>{3});
  CHECK(opened[1].replicas.size() == 2);
  CHECK(opened[1].empty == std::vector<uint32_t>{0});
  CHECK(lost.size() == 1); // nobody has heard of epoch 2
}

namespace {

/// The series of the failovers with that cause, over all roles.
double failovers(const net::metrics& metrics, const std::string& cause) {
  double sum = 0;
  for (const char* role : {"model", "attention", "prefill"}) {
    const auto name = "\nlamella_failovers_total{cause=\"" + cause + "\",role=\"" + role + "\"} ";
    const auto page = metrics.scrape().body;
    const auto at = page.find(name);
    REQUIRE(at != std::string::npos);
    sum += std::stod(page.substr(at + name.size()));
  }
  return sum;
}

} // namespace

TEST_CASE("A worker with a part that is lost is counted once, with the cause of its loss") {
  const auto metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  membership_world w{[&](membership_config& m) {
    m.seats = {};
    m.seats.add(worker_role::model, 1);
    m.seats.add(worker_role::attention, 3);
    m.shape.prefill_seats = 0;
    m.metrics = metrics;
    m.poll_interval = 1s;
    m.dead = 1s;
  }};
  w.want_epoch();
  w.pid = 77;
  auto m = w.join("model");
  w.pid = 7;
  auto a = w.join("attention");
  w.join("attention");
  auto spare = w.join("attention");
  REQUIRE(w.opened.size() == 1);
  const auto end_with = [&](const worker_actor& x, const caf::error& why) {
    caf::anon_send(caf::actor_cast<caf::actor>(x), caf::exit_msg{x.address(), why});
    w.settle();
  };
  w.advance(500ms, 100ms);
  SUBCASE("its process is gone") {
    end_with(m.worker, caf::exit_reason::remote_link_unreachable);
    CHECK(failovers(*metrics, "exit") == 1);
  }
  SUBCASE("it was silent for longer than it may") {
    m.book->deaf = 1000;
    w.advance(3s, 100ms);
    end_with(m.worker, caf::exit_reason::remote_link_unreachable);
    CHECK(failovers(*metrics, "timeout") == 1);
  }
  SUBCASE("it left") {
    end_with(m.worker, caf::exit_reason::user_shutdown);
    CHECK(failovers(*metrics, "operator") == 1);
  }
  SUBCASE("its device failed") {
    end_with(a.worker, caf::make_error(ec::device_lost, "ecc"));
    CHECK(failovers(*metrics, "fault") == 1);
  }
  SUBCASE("it does not open the next epoch") {
    end_with(a.worker, caf::exit_reason::remote_link_unreachable);
    CHECK(failovers(*metrics, "exit") == 1);
    m.book->silent = true;
    w.want_epoch();
    w.advance(40s, 1s);
    CHECK(failovers(*metrics, "timeout") == 1);
    CHECK(failovers(*metrics, "exit") == 1);
    return;
  }
  SUBCASE("nobody is lost where a spare is") {
    end_with(spare.worker, caf::exit_reason::remote_link_unreachable);
    for (const char* cause : {"exit", "timeout", "operator", "fault"})
      CHECK(failovers(*metrics, cause) == 0);
    CHECK(w.lost.empty());
    return;
  }
  double all = 0;
  for (const char* cause : {"exit", "timeout", "operator", "fault", "partition", "slow"})
    all += failovers(*metrics, cause);
  CHECK(all == 1);
  CHECK(w.lost.size() == 1);
}

TEST_CASE("A process that stands still is lost when that is seen, and for that reason") {
  const auto metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  membership_world w{[&](membership_config& m) { m.metrics = metrics; }};
  w.host = host_name();
  w.want_epoch();
  w.pid = 70;
  auto m = w.join("model");
  w.pid = 71;
  w.join("attention");
  w.pid = 72;
  w.join("attention");
  w.join("prefill");
  REQUIRE(w.opened.size() == 1);
  caf::anon_send(w.members, worker_stopped{99}); // nobody
  w.settle();
  CHECK(w.lost.empty());
  caf::anon_send(w.members, worker_stopped{70});
  w.settle();
  REQUIRE(w.lost.size() == 1);
  CHECK(says(w.lost[0].second, "is stopped"));
  CHECK(m.book->left.size() == 1);
  CHECK(failovers(*metrics, "timeout") == 1);
}

TEST_CASE("A worker that ends because what it served with failed is told of so, and no other") {
  std::vector<bool> own_faults;
  membership_world w{[&](membership_config& m) {
    m.on_part_lost = [&](const worker_info&, uint64_t, const std::vector<scheduler::stream_id>&,
                         bool own_fault) { own_faults.push_back(own_fault); };
  }};
  w.want_epoch();
  auto m = w.join("model");
  auto a0 = w.join("attention");
  w.join("attention");
  w.join("prefill");
  REQUIRE(w.opened.size() == 1);
  const auto failed = caf::make_error(ec::device_lost, "its part of the pipeline ended");
  caf::anon_send(caf::actor_cast<caf::actor>(m.worker), caf::exit_msg{m.worker.address(), failed});
  w.settle();
  w.end(a0.worker);
  CHECK(own_faults == std::vector<bool>{true, false});
}

TEST_CASE(
    "A8 a process that ends while it loads has lost no part, though its predecessor had one") {
  size_t parts_lost = 0;
  membership_world w{[&](membership_config& m) {
    m.on_part_lost = [&](const worker_info&, uint64_t, const std::vector<scheduler::stream_id>&,
                         bool) { ++parts_lost; };
  }};
  w.want_epoch();
  auto m = w.join("model");
  w.join("attention");
  w.join("attention");
  w.join("prefill");
  REQUIRE(w.opened.size() == 1);
  w.end(m.worker);
  CHECK(parts_lost == 1);
  const auto loading = w.join("model", 77, false);
  CHECK(loading.grant->index == 0);
  w.end(loading.joiner);
  CHECK(parts_lost == 1);
}

TEST_CASE_FIXTURE(membership_world,
                  "An injury is for one live worker: of a seat, of a role, or any") {
  auto m = join("model");
  auto a0 = join("attention");
  auto a1 = join("attention");
  const auto injured = [&](const std::string& target, uint64_t chance) {
    const auto answer = ask<std::string>(members, injure{target, {"kill", 0}, chance});
    settle();
    return answer->error ? system.render(answer->error) : answer->value;
  };
  CHECK(injured("attention/1", 0) == "attention/1");
  CHECK(injured("attention", 0) == "attention/0");
  CHECK(injured("attention", 3) == "attention/1");
  CHECK(injured("", 0) == "model/0");
  CHECK(says(injured("prefill", 0), "no worker process for 'prefill'"));
  CHECK(m.book->injuries == std::vector<std::string>{"kill"});
  CHECK(a0.book->injuries.size() == 1);
  CHECK(a1.book->injuries.size() == 2);
}

TEST_CASE_FIXTURE(membership_world, "Who takes a seat and dies or never loads does not keep it") {
  auto dies = join("model", 77, false);
  CHECK_FALSE(says(missing.back(), "model/0"));
  end(dies.joiner);
  CHECK(says(missing.back(), "model/0"));
  auto sleeps = join("model", 77, false);
  CHECK_FALSE(says(missing.back(), "model/0"));
  advance(11min, 1min);
  CHECK(says(missing.back(), "model/0"));
  CHECK(*join("model").result == "in");
}

TEST_CASE_FIXTURE(membership_world,
                  "A worker that cannot open an epoch, or does not answer, is sent away") {
  want_epoch();
  auto m = join("model");
  join("attention");
  join("prefill");
  SUBCASE("fails") { m.book->fails = true; }
  SUBCASE("is silent") { m.book->silent = true; }
  join("attention");
  advance(40s, 1s);
  REQUIRE(m.book->left.size() == 1);
  CHECK(opened.empty());
  CHECK(lost.empty()); // the supervisor still waits: nothing to tell
  auto again = join("model");
  CHECK(again.grant->incarnation == 2);
  REQUIRE(opened.size() == 1);
  CHECK(opened[0].epoch == 2); // the number of an epoch is never used twice
}

} // namespace lamella::actors::test
