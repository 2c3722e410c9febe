// DOOR and MEMBERSHIP on virtual time: who gets in, who gets a seat, when an epoch opens and ends.
#include "actors/door.hpp"
#include "actors/membership.hpp"
#include "tests/actors/stage.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;
using scheduler::worker_role;

namespace {

/// The scripted life of a worker process: what it was told.
struct worker_book {
  std::vector<uint64_t> opened, closed;
  std::vector<std::string> left, injuries;
  std::vector<epoch_open> orders;
  bool fails = false;   ///< to open an epoch
  uint64_t number = 99; ///< of its part in the epoch it opened last
  bool silent = false;  ///< never answers
  bool late = false;    ///< does the next order and its answer never comes
  work_done work{};     ///< of its device
};

struct world : stage {
  net::shared_secret secret = net::shared_secret::random();
  uint32_t nonces = 0;
  bool next_is_late = false; ///< who joins next
  scheduler::identity wanted{"1", "avx512", "3 layers", 77, true};
  std::vector<std::string> missing; ///< after every change
  size_t ready = 0;                 ///< workers, at the last change
  std::vector<worker_role> lacking; ///< at the last change
  std::set<scheduler::seat> slow;   ///< at the last change
  membership_actor members;
  door_actor gate;
  std::vector<std::pair<uint64_t, std::string>> lost; ///< told to the supervisor
  caf::actor supervisor_stand_in;
  std::vector<epoch_members> opened; ///< handed to the supervisor

  explicit world(const std::function<void(membership_config&)>& change = {}) {
    membership_config m;
    m.seats.add(worker_role::model, 1);
    m.seats.add(worker_role::attention, 2);
    m.seats.add(worker_role::prefill, 1);
    m.wanted = wanted;
    m.shape.shards = 2;
    m.shape.prefill_seats = 1;
    m.terms_of = [](const scheduler::seat& x) {
      worker_terms t;
      t.slots = x.index;
      return t;
    };
    m.on_change = [this](const seat_news& x) {
      missing.push_back(x.seats.missing());
      ready = x.ready.size();
      lacking = x.lacking;
      slow = x.slow;
    };
    if (change) change(m);
    members = spawn(actors::membership, std::move(m));
    gate = spawn(actors::door, door_config{secret, "cluster", "1", 100, 1000, members, [this] {
                                             auto n = std::to_string(++nonces);
                                             return std::string(nonce_bytes - n.size(), '0') + n;
                                           }});
    settle();
  }
  ~world() { end_all(); }

  uint32_t pid = 7; ///< of who joins next

  join_ask question(const std::string& role = "model") const {
    return {join_protocol, role,     "w", "1",  "host",
            pid,           any_seat, 100, 1000, std::string(nonce_bytes, 'w')};
  }

  /// The supervisor asks for an epoch; it has built pipelines of all it has got, but for `unbuilt`.
  void want_epoch(size_t unbuilt = 0) {
    const uint64_t built = opened.size() > unbuilt ? opened.rbegin()[unbuilt].epoch : 0;
    supervisor_stand_in = spawn([this, built](caf::event_based_actor* self) -> caf::behavior {
      self->request(members, caf::infinite, caf::open_atom_v, built)
          .then([this](const epoch_members& x) { opened.push_back(x); }, [](const caf::error&) {});
      return {[this](const epoch_lost& x) { lost.emplace_back(x.epoch, x.reason); }};
    });
    settle();
  }

  /// An actor that joins like a worker process: ask, prove, facts. It ends when told.
  struct process {
    std::shared_ptr<worker_book> book = std::make_shared<worker_book>();
    worker_actor worker;
    caf::actor joiner;
    std::shared_ptr<std::string> result = std::make_shared<std::string>("pending");
    std::shared_ptr<join_grant> grant = std::make_shared<join_grant>();
  };

  worker_actor make_worker(std::shared_ptr<worker_book> book, bool attends) {
    return spawn([=, this](worker_actor::pointer self) -> worker_actor::behavior_type {
      return {[=, this](const epoch_open& x) -> caf::result<epoch_ready> {
                book->opened.push_back(x.epoch);
                book->orders.push_back(x);
                if (std::exchange(book->late, false)) {
                  book->number = x.number;
                  return self->make_response_promise<epoch_ready>();
                }
                if (book->silent) return self->make_response_promise<epoch_ready>();
                if (book->fails) return caf::make_error(ec::links_failed, "no way");
                epoch_ready answer;
                answer.kept = std::exchange(book->number, x.number) == x.number;
                if (attends)
                  answer.shard = self->spawn([](attention_shard_actor::pointer) {
                    return attention_shard_actor::behavior_type{
                        [](const iteration_launch&) {},
                        [](kv_trim) { return true; },
                        [](const kv_pull&) { return kv_moved{}; },
                        [](kv_pull_cancel) {},
                        [](const kv_offer&) { return kv_moved{}; },
                        [](const kv_check&) { return kv_checked{}; }};
                  });
                else
                  answer.replica = self->spawn([](model_replica_actor::pointer) {
                    return model_replica_actor::behavior_type{
                        [](const iteration_launch&) {},
                        [](const sampled_of&) { return sampled{}; }};
                  });
                return answer;
              },
              [book](const epoch_close& x) { book->closed.push_back(x.epoch); },
              [=](const worker_leave& x) {
                book->left.push_back(x.reason);
                self->quit();
              },
              [book](const worker_injury& x) { book->injuries.push_back(x.what); },
              [](wake_atom) {},
              [book](status_atom) {
                return worker_peers{{{"somebody", "shm"}}, book->work};
              }};
    });
  }

  process join(const std::string& role, uint64_t digest = 77, bool says_facts = true) {
    process p;
    p.book->late = std::exchange(next_is_late, false);
    p.worker = make_worker(p.book, role == "attention");
    p.joiner = spawn([=, this](caf::event_based_actor* self) -> caf::behavior {
      const auto mine = question(role);
      const auto fail = [=, this](const caf::error& e) { *p.result = system.render(e); };
      self->request(gate, caf::infinite, mine)
          .then(
              [=, this](const join_challenge& challenge) {
                self->request(gate, caf::infinite,
                              join_proof{challenge.nonce, worker_proof(secret, mine, challenge)})
                    .then(
                        [=, this](const join_grant& grant) {
                          *p.grant = grant;
                          CHECK(proves_control(secret, grant.proof, mine, challenge));
                          if (!says_facts) return;
                          self->request(gate, caf::infinite,
                                        worker_facts{p.worker, "1", "avx512", "3 layers", digest,
                                                     "at " + role, "host"})
                              .then([=](bool) { *p.result = "in"; }, fail);
                        },
                        fail);
              },
              fail);
      return {[](int) {}};
    });
    settle();
    return p;
  }

  void end(const caf::strong_actor_ptr& x) {
    caf::anon_send_exit(x, caf::exit_reason::kill);
    settle();
  }
  template <class Handle> void end(const Handle& x) {
    end(caf::actor_cast<caf::strong_actor_ptr>(x));
  }
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE_FIXTURE(world,
                  "Nobody gets in without the secret, with an old nonce, or with one twice") {
  const auto ask_it = question();
  const auto challenge = ask<join_challenge>(gate, ask_it);
  settle();
  REQUIRE((challenge->came && !challenge->error));
  const auto proof = worker_proof(secret, ask_it, challenge->value);
  // A proof by another secret uses the nonce up.
  const auto wrong = ask<join_grant>(
      gate, join_proof{challenge->value.nonce,
                       worker_proof(net::shared_secret::random(), ask_it, challenge->value)});
  settle();
  CHECK(wrong->error == ec::join_denied);
  const auto again = ask<join_grant>(gate, join_proof{challenge->value.nonce, proof});
  settle();
  CHECK(again->error == ec::join_refused);
  // Of another role, over another nonce, too late.
  const auto second = ask<join_challenge>(gate, ask_it);
  settle();
  auto other_role = ask_it;
  other_role.role = "attention";
  const auto forged = ask<join_grant>(
      gate, join_proof{second->value.nonce, worker_proof(secret, other_role, second->value)});
  settle();
  CHECK(forged->error == ec::join_denied);
  const auto third = ask<join_challenge>(gate, ask_it);
  settle();
  advance(6s, 1s);
  const auto late = ask<join_grant>(
      gate, join_proof{third->value.nonce, worker_proof(secret, ask_it, third->value)});
  settle();
  CHECK(late->error == ec::join_refused);
  // Facts without a join.
  const auto facts =
      ask<bool>(gate, worker_facts{make_worker(std::make_shared<worker_book>(), true), "1",
                                   "avx512", "3 layers", 77, "", ""});
  settle();
  CHECK(facts->error == ec::join_refused);
  CHECK(missing.size() == 1); // no seat was ever touched
}

TEST_CASE_FIXTURE(world, "Wrong proofs block their node for a minute") {
  for (int i = 0; i < 5; ++i) {
    const auto challenge = ask<join_challenge>(gate, question());
    settle();
    REQUIRE(!challenge->error);
    ask<join_grant>(gate, join_proof{challenge->value.nonce, std::string(32, 'x')});
    settle();
  }
  const auto blocked = ask<join_challenge>(gate, question());
  settle();
  CHECK(blocked->error == ec::join_denied);
  CHECK(says(system.render(blocked->error), "try again in 60 s"));
  advance(61s, 1s);
  const auto open = ask<join_challenge>(gate, question());
  settle();
  CHECK(!open->error);
}

TEST_CASE_FIXTURE(world, "What differs before anything is proved is said with both values") {
  const auto refused = [&](join_ask x, const std::string& part) {
    const auto answer = ask<join_challenge>(gate, x);
    settle();
    REQUIRE(answer->error == ec::join_refused);
    const auto text = system.render(answer->error);
    CHECK_MESSAGE(says(text, part), text);
  };
  auto x = question();
  x.protocol = 9;
  refused(x, "the service has " + std::to_string(join_protocol) + ", the worker 9");
  x = question();
  x.version = "0.9";
  refused(x, "the service has 1, the worker 0.9");
  x.version = "\"\n";
  refused(x, "an odd one");
  x = question();
  x.dead_ms = 0;
  refused(x, "the service has 100 and 1000, the worker 100 and 0");
  refused(question("gateway"), "no pool is named 'gateway'");
  for (const auto& bad : {std::string(65, 'n'), std::string{"a b"}, std::string{"a\"b"}}) {
    x = question();
    x.name = bad;
    refused(x, "malformed");
  }
  x = question();
  x.nonce.pop_back();
  refused(x, "malformed");
}

TEST_CASE_FIXTURE(world, "Challenges that nobody answers are bounded and run out") {
  for (int i = 0; i < 200; ++i) ask<join_challenge>(gate, question());
  settle();
  const auto full = ask<join_challenge>(gate, question());
  settle();
  CHECK(says(system.render(full->error), "too many workers are joining"));
  advance(6s, 1s);
  CHECK(*join("model").result == "in");
}

TEST_CASE_FIXTURE(world, "An epoch opens when everybody sits and the supervisor has asked") {
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
  CHECK(a1.grant->terms.slots == 1); // its own terms
  const auto& order = m.book->orders.at(0);
  REQUIRE(order.replicas.size() == 2);
  CHECK(order.replicas[0].address == "at model");
  CHECK(order.replicas[1].address == "at prefill");
  CHECK(order.replicas[1].seat == "prefill/0");
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

TEST_CASE_FIXTURE(world,
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
  join("prefill");
  REQUIRE(lost.size() == 2);
  CHECK(says(lost[1].second, "prefill/0 has joined"));
  want_epoch();
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].replicas.size() == 2);
  CHECK(opened[2].empty.empty());
  CHECK(m.book->opened == std::vector<uint64_t>{1, 2, 3});
  CHECK(a1.book->opened == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE_FIXTURE(world, "Who sits is not yet ready, and what is lacking is told with the loss") {
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

TEST_CASE_FIXTURE(world, "L-M26 KV that was lost in an epoch nobody got is still told of") {
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

TEST_CASE_FIXTURE(world, "L-M26 KV is lost as well if nobody has heard where it was begun anew") {
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

TEST_CASE_FIXTURE(world, "An injury is for one live worker: of a seat, of a role, or any") {
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

TEST_CASE_FIXTURE(world, "Wrong model: refused with both digests, and the seat is free again") {
  auto wrong = join("model", 78);
  CHECK(says(*wrong.result, "the service has 000000000000004d, the worker 000000000000004e"));
  CHECK(says(missing.back(), "model/0"));
  CHECK(*join("model").result == "in");
  CHECK(*join("attention", 0).result == "in"); // a shard has no weights
}

TEST_CASE_FIXTURE(world, "Who takes a seat and dies or never loads does not keep it") {
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

namespace {

constexpr scheduler::seat model_0{worker_role::model, 0}, shard_1{worker_role::attention, 1};

/// For two looks, those have taken `times` as long as the others, for 30 iterations of 8 rows each.
void work(world& w, const std::vector<world::process*>& all, const world::process* late,
          uint64_t times) {
  for (int look = 0; look < 2; ++look) {
    for (auto* x : all) {
      x->book->work.iterations += 30;
      x->book->work.units += 30 * 8;
      x->book->work.busy_ns += 30 * 1'000'000 * (x == late ? times : 1);
    }
    w.advance(1s, 100ms);
  }
}

} // namespace

TEST_CASE("A2 model replica, slow: DRAIN, a spare takes its part, and it comes back as the spare") {
  world w{[](membership_config& m) {
    m.seats = {};
    m.seats.add(worker_role::model, 3);
    m.seats.add(worker_role::attention, 2);
    m.shape.replicas = 2;
    m.shape.prefill_seats = 0;
    m.look_every = 1s;
  }};
  w.want_epoch();
  std::vector<world::process> models(3);
  std::vector<world::process*> all;
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
  CHECK(says(w.lost[0].second, "model/0 lost: it is slow, and a spare is not"));
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
    "A2 attention worker, slow: told, and kept where its KV would have to be computed again") {
  for (const bool parity : {false, true}) {
    CAPTURE(parity);
    world w{[=](membership_config& m) {
      m.seats = {};
      m.seats.add(worker_role::model, 1);
      m.seats.add(worker_role::attention, 4); // a spare, and a parity or another spare
      m.shape.prefill_seats = 0;
      m.shape.parity = parity;
      m.look_every = 1s;
    }};
    w.want_epoch();
    auto m = w.join("model");
    std::vector<world::process> shards(4);
    std::vector<world::process*> all;
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
      REQUIRE(w.lost.size() == 1);
      CHECK(says(w.lost[0].second, "attention/1 lost: it is slow, and a spare is not"));
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

TEST_CASE_FIXTURE(world, "A worker that cannot open an epoch, or does not answer, is sent away") {
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
