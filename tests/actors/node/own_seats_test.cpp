// The seats of this process: taken, taken again, and given up.
#include "actors/membership/membership.hpp"
#include "actors/node/own_seats.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/stage.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;
using scheduler::seat;
using scheduler::worker_role;

namespace {

struct world : stage {
  uint64_t part_in = 0; ///< epoch in which whoever is lost had a part
  suspect_board::budget budget{};
  std::map<std::string, uint32_t> incarnations; ///< of those who sit, by seat
  bool throws = false, over = false;
  std::vector<std::string> hopeless; ///< why the service cannot serve
  own_seats_actor own;
  membership_actor members;
  std::shared_ptr<reply<bool>> taken;

  explicit world(uint32_t replicas = 1) {
    own_seats_config c;
    c.seats = {{worker_role::model, 0}, {worker_role::attention, 0}, {worker_role::attention, 1}};
    for (uint32_t i = 1; i < replicas; ++i) c.seats.push_back({worker_role::model, i});
    c.own_threads = false;
    c.is_over = [this] { return over; };
    c.make = [this](const seat& where, const join_grant& grant) {
      if (throws) throw std::runtime_error{"no device"};
      own_worker x;
      x.config.where = where;
      x.config.incarnation = grant.incarnation;
      x.config.port.close = [](uint64_t) {};
      x.facts.version = x.facts.kernels = x.facts.shapes = "1";
      return x;
    };
    own = spawn(own_seats, std::move(c));
    membership_config m;
    m.seats.add(worker_role::model, replicas);
    m.shape.replicas = replicas;
    m.on_hopeless = [this](const std::string& why) { hopeless.push_back(why); };
    m.seats.add(worker_role::attention, 2);
    m.shape.shards = 2;
    m.wanted = {"1", "1", "1", 0, true};
    m.terms_of = [](const seat&, uint32_t) { return worker_terms{}; };
    m.on_worker = [this](const worker_info& x, bool lost, bool) {
      if (lost)
        incarnations.erase(x.seat),
            caf::anon_send(own, own_seat_lost{x.seat, x.trouble, part_in, budget});
      else
        incarnations[x.seat] = x.incarnation;
    };
    members = spawn(membership, std::move(m));
  }
  ~world() {
    caf::anon_send_exit(own, caf::exit_reason::user_shutdown); // takes its WORKERs along
    settle();
    end_all();
    own = nullptr;
    members = nullptr;
  }

  void take() {
    taken = ask<bool>(own, caf::open_atom_v, members);
    settle();
  }

  /// The WORKERs of these seats fail.
  void fail(std::initializer_list<seat> seats, uint64_t epoch) {
    part_in = epoch;
    using own_seats_ptr = own_seats_actor::stateful_pointer<own_seats_state>;
    auto& workers =
        static_cast<own_seats_ptr>(caf::actor_cast<caf::abstract_actor*>(own))->state.workers;
    for (const auto& x : seats) caf::anon_send_exit(workers.at(x), caf::exit_reason::kill);
    settle();
  }

  bool all_sit() const { return incarnations.size() == 3; }
};

constexpr seat replica{worker_role::model, 0}, first{worker_role::attention, 0},
    second{worker_role::attention, 1};

} // namespace

TEST_CASE_FIXTURE(world, "the seats of this process are taken, and told of when all are") {
  take();
  REQUIRE(taken->came);
  CHECK(taken->value);
  CHECK(incarnations
        == std::map<std::string, uint32_t>{{"attention/0", 1}, {"attention/1", 1}, {"model/0", 1}});
}

TEST_CASE_FIXTURE(world, "a seat that cannot be taken at the start is told of with the reason") {
  throws = true;
  take();
  REQUIRE(taken->came);
  CHECK(system.render(taken->error).find("own seat model-0: ") != std::string::npos);
  CHECK(system.render(taken->error).find("no device") != std::string::npos);
}

TEST_CASE_FIXTURE(world, "a failed WORKER's seat is taken again after a delay, the others stay") {
  take();
  fail({first}, 1);
  CHECK(incarnations.size() == 2);
  advance(13ms);
  CHECK(incarnations
        == std::map<std::string, uint32_t>{{"attention/0", 2}, {"attention/1", 1}, {"model/0", 1}});
}

TEST_CASE_FIXTURE(world, "reliability A8: without a seat that fails for the sixth time in 30 s the "
                         "service ends where no other has its part") {
  take();
  for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
    fail({replica, first, second}, epoch); // all by one failure
    CHECK(hopeless.empty());
    advance(1s, 10ms);
    REQUIRE(all_sit());
    caf::anon_send(own, begin_atom_v);
  }
  SUBCASE("it is the one that failed") {
    fail({replica}, 6);
    REQUIRE(hopeless.size() == 1);
    CHECK(hopeless.front().find("model/0: ") == 0);
    CHECK(hopeless.front().find("6 times in a row") != std::string::npos);
  }
  SUBCASE("another one, which had failed with it") {
    fail({first}, 6);
    CHECK(hopeless.empty());
  }
}

namespace {

struct two_replicas : world {
  two_replicas() : world{2} {}
};

} // namespace

TEST_CASE_FIXTURE(two_replicas, "reliability A8: a seat of this process that fails again and again "
                                "is told of, and tried again for ever, while others serve") {
  take();
  for (uint64_t epoch = 1; epoch <= 5; ++epoch) {
    fail({replica}, epoch);
    advance(1s, 10ms);
    REQUIRE(incarnations.size() == 4);
    caf::anon_send(own, begin_atom_v);
  }
  fail({replica}, 6);
  CHECK(hopeless.empty());
  auto status = ask<system_status>(members, status_atom_v);
  settle();
  REQUIRE(status->came);
  REQUIRE(status->value.missing.size() == 1);
  CHECK(status->value.missing.front().seat == "model/0");
  CHECK(status->value.missing.front().state == "failing");
  for (uint64_t epoch = 7; epoch <= 20; ++epoch) {
    advance(80s, 1s);
    REQUIRE(incarnations.size() == 4); // it was tried again
    fail({replica}, epoch);
  }
  CHECK(hopeless.empty());
}

TEST_CASE_FIXTURE(world, "failures far apart never add up; those of a request that is hunted, or "
                         "found, are not held against the seats") {
  take();
  const auto fail_often = [&](caf::timespan between) {
    for (uint64_t i = 0; i < 8; ++i) {
      fail({first}, part_in + 1);
      advance(between, 100ms);
      caf::anon_send(own, begin_atom_v); // all sit again
      settle();
    }
  };
  SUBCASE("far apart") { fail_often(31s); }
  SUBCASE("hunted") {
    budget = suspect_board::budget::excused;
    fail_often(6s);
  }
  SUBCASE("found") {
    budget = suspect_board::budget::explained;
    fail_often(1s);
  }
  CHECK(hopeless.empty());
  CHECK(all_sit());
}

TEST_CASE_FIXTURE(world, "a seat whose epochs cannot be opened fails as well, and a lost device "
                         "ends it all at once") {
  take();
  for (int i = 0; i < 5; ++i) {
    fail({second}, 0); // without a part
    advance(1s, 10ms);
  }
  CHECK(all_sit());
  SUBCASE("the sixth time") {
    fail({second}, 0);
    CHECK(hopeless.size() == 1);
  }
  SUBCASE("the device is lost") {
    over = true;
    fail({second}, 0);
    CHECK(hopeless.empty()); // who knows that has told of it
    advance(1s, 10ms);
    CHECK(!all_sit());
  }
}

} // namespace lamella::actors::test
