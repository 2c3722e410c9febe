// MEMBERSHIP on virtual time: seats whose processes end again and again are told of, not waited
// for, and taken back when they serve. Only a service that can never begin is given up.
#include "actors/protocol/pools.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

struct failing_world : membership_world {
  std::vector<std::string> hopeless;
  std::vector<std::string> news; ///< of workers

  failing_world()
      : membership_world{[this](membership_config& m) {
          m.seats.add(worker_role::model, 1);     // two replicas
          m.seats.add(worker_role::attention, 1); // two shards and a spare
          m.shape.replicas = 2;
          m.on_hopeless = [this](const std::string& why) { hopeless.push_back(why); };
          m.on_worker = [this](const worker_info& x, bool gone, bool) {
            news.push_back(x.seat + (gone ? " lost" : " joins"));
          };
          m.on_serving = [this](const worker_info& x) { news.push_back(x.seat + " serves"); };
        }} {}

  void fails(const std::string& role, uint32_t index, uint32_t faults = 6, bool here = false) {
    caf::anon_send(members, seat_failing{role, index, "exit code 3", faults, here});
    settle();
  }
  system_status status() {
    const auto x = ask<system_status>(members, status_atom_v);
    settle();
    return x->value;
  }
  void join_all_but_one_replica() {
    join("model");
    join("attention");
    join("attention");
    join("prefill");
  }
};

} // namespace

TEST_CASE_FIXTURE(failing_world, "reliability A8: the first epoch does not wait for a seat that "
                                 "fails, and takes it in when it serves") {
  want_epoch();
  join_all_but_one_replica();
  CHECK(opened.empty());
  fails("model", 1);
  REQUIRE(opened.size() == 1);
  CHECK(opened[0].replicas.size() == 2); // one decodes, one is the prefill worker's
  CHECK(hopeless.empty());
  CHECK(failing == std::set<scheduler::seat>{{worker_role::model, 1}});
  auto x = status();
  for (const auto& gone : x.missing) {
    CHECK(gone.state == (gone.seat == "model/1" ? "failing" : "missing"));
    CHECK(gone.trouble == (gone.seat == "model/1" ? "exit code 3, 6 times in a row" : ""));
  }
  join("model");
  CHECK(failing.empty());
  REQUIRE(due.size() == 1); // the epoch can grow
  want_next();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].replicas.size() == 3);
  for (const auto& w : status().workers) CHECK(w.trouble.empty());
}

TEST_CASE_FIXTURE(failing_world, "reliability A8: seats that fail never end a service that has "
                                 "served, whoever is left") {
  want_epoch();
  auto first = join("model"), second = join("model");
  join("attention");
  auto shard = join("attention");
  join("prefill");
  REQUIRE(opened.size() == 1);
  end(first.worker);
  end(second.worker);
  fails("model", 0);
  fails("model", 1, 99);
  end(shard.worker);
  fails("attention", 1);
  CHECK(hopeless.empty());
  CHECK(failing.size() == 3);
  want_epoch();
  join("attention"); // and they come back
  join("model");
  CHECK(opened.size() == 2);
}

TEST_CASE_FIXTURE(failing_world,
                  "reliability A8: a service that has served ends where seats of its "
                  "own process fail and no other has their part") {
  want_epoch();
  auto first = join("model"), second = join("model");
  join("attention");
  join("attention");
  join("prefill");
  REQUIRE(opened.size() == 1);
  end(first.worker);
  fails("model", 0, 6, true);
  CHECK(hopeless.empty()); // the other replica serves
  end(second.worker);
  CHECK(hopeless.empty());
  fails("model", 1, 6, true);
  REQUIRE(hopeless.size() == 1);
  CHECK(says(hopeless[0], "model/1: exit code 3, 6 times in a row"));
}

TEST_CASE_FIXTURE(failing_world, "reliability A8: a service whose seats all fail before it has "
                                 "ever served is given up, with the reasons") {
  want_epoch();
  join("attention");
  join("attention");
  join("prefill");
  fails("attention", 2); // a spare
  fails("model", 0);
  CHECK(hopeless.empty());
  next_refusal = "model file cut";
  CHECK(says(*join("model").result, "model file cut"));
  next_refusal.clear();
  fails("model", 0);
  fails("model", 1);
  REQUIRE(hopeless.size() == 1);
  CHECK(says(hopeless[0], "model/0: exit code 3, 6 times in a row: model file cut"));
  CHECK(says(hopeless[0], "model/1: exit code 3"));
}

TEST_CASE_FIXTURE(failing_world, "The keeper hears of a worker when it joins and when it serves") {
  join("model");
  CHECK(news == std::vector<std::string>{"model/0 joins", "model/0 serves"});
  next_refusal = "no";
  join("model");
  CHECK(news.size() == 4);
  CHECK(news[3] == "model/1 lost");
}

TEST_CASE_FIXTURE(failing_world, "A seat of a role that is none is not told of") {
  fails("gateway", 0);
  CHECK(failing.empty());
}

TEST_CASE("A child process that is started again takes the seat of its predecessor, known or not") {
  membership_world w{[](membership_config& m) { m.of_children = {worker_role::attention}; }};
  const auto join = [&](const std::string& role, const std::string& name, uint32_t seat) {
    w.name = name;
    w.preferred = seat;
    return w.join(role);
  };
  auto first = join("attention", "attention-0", 0);
  auto other = join("attention", "attention-1", 1);
  auto again = join("attention", "attention-0", 0); // before the end of the first is known
  CHECK(again.grant->index == 0);
  CHECK(again.grant->incarnation == 2);
  CHECK(first.book->left == std::vector<std::string>{"its process was started again"});
  CHECK(other.book->left.empty());
  // Names of workers that others start are theirs to choose.
  auto replica = join("model", "model-0", 0);
  CHECK(says(*join("model", "model-0", 0).result, "is full"));
  CHECK(replica.book->left.empty());
}

TEST_CASE("A8 a worker that ends while the pipeline moves is told of with the epoch that serves, "
          "where it had a part in it") {
  std::vector<uint64_t> told;
  membership_world w{[&](membership_config& m) {
    m.seats.add(worker_role::attention, 1);
    m.on_part_lost = [&](const worker_info&, uint64_t epoch,
                         const std::vector<scheduler::stream_id>& streams, bool) {
      told.push_back(epoch);
      CHECK(streams.size() == 2);
    };
  }};
  w.want_epoch();
  w.join("model");
  auto a0 = w.join("attention");
  auto a1 = w.join("attention");
  w.join("prefill");
  auto spare = w.join("attention");
  w.ask<pool_change>(w.members, worker_drain{"attention/1", false});
  w.settle();
  w.want_next();
  REQUIRE(w.opened.size() == 2);
  SUBCASE("of both") {
    w.end(a0.worker);
    CHECK(told == std::vector<uint64_t>{1});
  }
  SUBCASE("of the one before") {
    w.end(a1.worker);
    CHECK(told == std::vector<uint64_t>{1});
  }
  SUBCASE("of the next one") {
    w.end(spare.worker);
    CHECK(told == std::vector<uint64_t>{2});
  }
}

} // namespace lamella::actors::test
