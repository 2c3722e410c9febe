// The component x failure matrix (reliability A2), cell by cell: one trouble while requests run, in
// a small cluster on virtual time. Every client gets the tokens of an undisturbed run, all comes to
// rest, and what was done about the trouble is what the matrix says. recovery_matrix.md tells which
// test covers which cell.
#include "actors/device/iteration.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/simulation/rest.hpp"
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

using scheduler::worker_role;

constexpr uint64_t seeds = 6;

/// Requests that went on by that method, in all clusters so far.
double recovered(const cluster& c, const std::string& method) {
  return metric(*c.server->metrics, "lamella_requests_recovered_total{method=\"" + method + "\"}");
}

/// What came of a trouble.
struct result {
  uint32_t epochs = 0;       ///< opened after it
  uint32_t incarnations = 0; ///< of the victim, after it
  double replica = 0, recompute = 0;
  bool given_up = false;
  std::chrono::nanoseconds took{0}; ///< until all requests were over
};

/// One cluster, its clients, and one trouble in the midst of them.
class ordeal {
public:
  ordeal(cluster_shape shape, uint64_t seed) : where{shape, mix(seed, 3)}, dice_{mix(seed, 4)} {
    REQUIRE(where.run_until([&] { return where.server != nullptr; }, 60s));
    clients_.resize(6);
    for (auto& x : clients_) {
      for (auto n = 4 + dice_.below(30); n > 0; --n)
        x.prompt.push_back(first_byte + static_cast<uint32_t>(dice_.below(256)));
      x.max_tokens = 40 + static_cast<uint32_t>(dice_.below(30));
      x.seed = dice_.below(1'000'000);
      x.stream = true;
      begin(where, x);
    }
  }

  /// The first worker of that role that has something to do: who joined late may be the spare.
  worker_box& worker(worker_role role) {
    const auto name = std::string{scheduler::to_string(role)} + "/";
    worker_box* found = nullptr;
    const auto look = [&] {
      for (auto& x : where.workers)
        if (found == nullptr && x->name().starts_with(name) && !x->idle()) found = x.get();
      return found != nullptr;
    };
    REQUIRE(where.run_until(look, 10s));
    return *found;
  }

  /// The request actor of one more client dies while it is at work; what it answers to.
  std::weak_ptr<actors::test::fake_exchange> kill_request() {
    auto one = std::make_shared<client>();
    one->prompt = {first_byte + 1, first_byte + 2, first_byte + 3};
    one->max_tokens = 60;
    one->stream = true;
    begin(where, *one);
    const std::weak_ptr<actors::test::fake_exchange> told = one->exchange;
    REQUIRE(where.run_until([&] { return one->exchange->text().size() > 2; }, 10s));
    const auto dies = [&] { // when it has a message
      for (auto* job : where.sched.jobs)
        if (auto* x = dynamic_cast<actors::request_ptr>(job);
            x != nullptr && x->state.exchange == one->exchange) {
          caf::anon_send_exit(caf::actor_cast<caf::strong_actor_ptr>(x->ctrl()),
                              caf::exit_reason::kill);
          return true;
        }
      return false;
    };
    REQUIRE(where.run_until(dies, 10s));
    return told;
  }

  /// Waits for tokens of a client, makes the trouble, and waits for the end of it all.
  template <class Trouble> result suffer(Trouble trouble, worker_box* victim = nullptr) {
    auto& c = where;
    const auto tokens = 2 + dice_.below(20);
    REQUIRE(c.run_until([&] { return clients_[0].exchange->text().size() > tokens; }, 10s));
    result before = now(victim);
    const auto began = c.time.elapsed();
    trouble();
    const auto all_over = [&] {
      return std::all_of(clients_.begin(), clients_.end(), [](auto& x) { return x.over(); });
    };
    CHECK(c.run_until(all_over, 599s));
    const auto took = c.time.elapsed() - began;
    c.run_until([] { return false; }, 6s); // who is not waited for is missed as well
    for (size_t i = 0; i < clients_.size(); ++i) {
      CAPTURE(i);
      CHECK(check(clients_[i]) == "");
    }
    CHECK(comes_to_rest(c) == "");
    CHECK(c.seats.errors.empty());
    CHECK(c.divergences() == 0);
    CHECK(c.links.strangers() == 0);
    const auto after = now(victim);
    return {after.epochs - before.epochs,
            after.incarnations - before.incarnations,
            after.replica - before.replica,
            after.recompute - before.recompute,
            c.given_up,
            took};
  }

  cluster where;

private:
  result now(worker_box* victim) {
    return {static_cast<uint32_t>(where.epochs.size()),
            victim == nullptr ? 0 : victim->incarnations(), recovered(where, "replica"),
            recovered(where, "recompute"), where.given_up};
  }

  tests::splitmix dice_;
  std::vector<client> clients_;
};

cluster_shape shape_of(worker_role role) {
  cluster_shape s; // two replicas, two shards by head, a spare
  s.slots = 800;   // for all at once: where slots lack, those that wait lose their KV to others
  if (role == worker_role::prefill) s.prefill = 1;
  return s;
}

/// `trouble(ordeal&, worker_box&)` for every seed; `look` at what came of each. Returns the epochs
/// that came of all.
template <class Trouble, class Look>
uint32_t each_seed(worker_role role, Trouble trouble, Look look) {
  uint32_t epochs = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    ordeal x{shape_of(role), seed};
    auto& who = x.worker(role);
    const auto came = x.suffer([&] { trouble(x, who); }, &who);
    CHECK_FALSE(came.given_up);
    epochs += came.epochs;
    look(came);
  }
  return epochs;
}

/// The worker is lost, once, and one comes in its place. Without a shard's loss no KV is computed
/// again; with it, what had KV there is.
void is_replaced(worker_role role, const result& came) {
  CHECK(came.epochs >= 1);
  CHECK(came.epochs <= 4); // without it, and with it again; some links may be made anew
  CHECK(came.incarnations == 1);
  if (role == worker_role::attention) CHECK(came.recompute > 0);
  if (role == worker_role::model) CHECK(came.recompute == 0);
}

void crash(worker_role role) {
  each_seed(
      role, [](auto&, auto& who) { who.crash(100ms); },
      [=](const auto& came) { is_replaced(role, came); });
}

/// Longer than anybody is waited for.
void stop(worker_role role) {
  each_seed(
      role, [](auto&, auto& who) { who.stop(4s); },
      [=](const auto& came) { is_replaced(role, came); });
}

/// Its heartbeats go on and its device stands still: found by the iteration's deadline. Where it
/// does not move again it is sent away; nobody else is.
void hang(worker_role role) {
  each_seed(
      role, [](auto&, auto& who) { who.hang(200s); },
      [](const auto& came) { CHECK(came.epochs >= 1); });
}

void slow(worker_role role) {
  each_seed(
      role, [](auto&, auto& who) { who.slow_down(20, 2s); },
      [](const auto& came) {
        CHECK(came.epochs == 0);
        CHECK(came.incarnations == 0);
      });
}

/// Nothing comes from the host and nothing gets there, for longer than the dead threshold.
void net_cut(worker_role role) {
  each_seed(
      role,
      [](auto& x, auto& who) {
        who.partition(3s);
        x.where.time.in(1ms, [&who] { who.cut_link(); });
      },
      [=](const auto& came) {
        CHECK(came.epochs >= 1);
        CHECK(came.incarnations == 1);
      });
}

/// A frame that did not arrive, or is another one than it says.
void faulty_frame(worker_role role, const char* what) {
  each_seed(
      role, [=](auto&, auto& who) { who.injure(what); },
      [](const auto& came) {
        CHECK(came.incarnations == 0); // who sent it stays
        CHECK(came.took < 20s);        // nobody waits for it as long as for what is not known
        CHECK(came.recompute == 0);
      });
}

/// The first actor of that name in the control process dies as by a bug of its own.
void actor_dies(const char* name) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    ordeal x{shape_of(worker_role::model), seed};
    const auto came = x.suffer([&] { REQUIRE(x.where.kill_actor(name)); });
    CHECK_FALSE(came.given_up);
    CHECK(came.epochs == 1);
  }
}

} // namespace

TEST_CASE("A2 L-M25 model replica, crash: RERUN on the other one") { crash(worker_role::model); }
TEST_CASE("A2 L-M25 model replica, STOP: RERUN on the other one") { stop(worker_role::model); }
TEST_CASE("A2 L-M25 model replica, hang: RERUN after the deadline") { hang(worker_role::model); }
TEST_CASE("A2 model replica, slow: nobody is lost, late but correct") { slow(worker_role::model); }
TEST_CASE("A2 L-M25 model replica, net cut: RERUN on the other one") {
  net_cut(worker_role::model);
}
TEST_CASE("A2 model replica, partial write: RESET and RERUN, the replica stays") {
  faulty_frame(worker_role::model, "drop");
}
TEST_CASE("A2 model replica, corrupt message: RESET and RERUN, the replica stays") {
  faulty_frame(worker_role::model, "corrupt");
}

TEST_CASE("A2 L-M26 attention worker, crash: REBUILD on the spare") {
  crash(worker_role::attention);
}
TEST_CASE("A2 L-M26 attention worker, STOP: FENCE and REBUILD on the spare") {
  stop(worker_role::attention);
}
TEST_CASE("A2 attention worker, hang: RERUN after the deadline") { hang(worker_role::attention); }
TEST_CASE("A2 attention worker, slow: nobody is lost, late but correct") {
  slow(worker_role::attention);
}
TEST_CASE("A2 L-M26 attention worker, net cut: FENCE and REBUILD on the spare") {
  net_cut(worker_role::attention);
}
TEST_CASE("A2 attention worker, partial write: RESET and RERUN, its KV stays") {
  faulty_frame(worker_role::attention, "drop");
}
TEST_CASE("A2 attention worker, corrupt message: RESET and RERUN, its KV stays") {
  faulty_frame(worker_role::attention, "corrupt");
}

TEST_CASE("A2 prefill worker, crash: REQUEUE") { crash(worker_role::prefill); }
TEST_CASE("A2 prefill worker, STOP: REQUEUE") { stop(worker_role::prefill); }
TEST_CASE("A2 prefill worker, slow: nobody is lost, late but correct") {
  slow(worker_role::prefill);
}
TEST_CASE("A2 prefill worker, net cut: REQUEUE") { net_cut(worker_role::prefill); }
TEST_CASE("A2 prefill worker, partial write: discarded, REQUEUE") {
  faulty_frame(worker_role::prefill, "drop");
}
TEST_CASE("A2 prefill worker, corrupt message: discarded, REQUEUE") {
  faulty_frame(worker_role::prefill, "corrupt");
}

// With KV of its own, and sequences at it that found no place elsewhere.
TEST_CASE(
    "A2 S-M07 prefill worker that decodes, crash: RERUN elsewhere, with the KV of the shards") {
  double spread = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    auto shape = shape_of(worker_role::prefill);
    shape.mixes = true;
    shape.max_batch = 2;
    ordeal x{shape, seed};
    auto& who = x.worker(worker_role::prefill);
    const auto came = x.suffer([&] { who.crash(100ms); }, &who);
    CHECK_FALSE(came.given_up);
    is_replaced(worker_role::prefill, came);
    CHECK(came.recompute == 0);
    spread += metric(*x.where.server->metrics, "lamella_sequences_overflowed_total");
  }
  CHECK(spread >= seeds);
}

TEST_CASE("A2 batch actor, crash: REFORM") { actor_dies("batch"); }
TEST_CASE("A2 request actor, crash: its client is told, and the others go on") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    ordeal x{{}, seed};
    const auto victim = x.kill_request();
    const auto came = x.suffer([] {});
    CHECK_FALSE(came.given_up);
    CHECK(came.epochs == 0);
    // The server answers for an exchange that was dropped: 500, or the end of the connection.
    CHECK(victim.expired());
  }
}
TEST_CASE("A2 KV allocator, crash: RESYNC, from the requests") { actor_dies("kv_allocator"); }
TEST_CASE("A2 global scheduler, crash: all ask again") { actor_dies("global_scheduler"); }
TEST_CASE("A2 prefill actor, crash: prompts ask again") { actor_dies("prefill_worker"); }

TEST_CASE("A2 GPU executor, failed work: the iteration runs again, its worker stays") {
  for (const auto role : {worker_role::model, worker_role::attention})
    each_seed(
        role, [](auto&, auto& who) { who.fail(); },
        [](const auto& came) { CHECK(came.recompute == 0); });
}
TEST_CASE(
    "A2 F3 GPU executor, work that fails again and again: as its worker, and no request ends") {
  for (const auto role : {worker_role::model, worker_role::attention, worker_role::prefill})
    each_seed(
        role, [](auto&, auto& who) { who.fail(6 * actors::attempts_max); },
        [=](const auto& came) { is_replaced(role, came); });
}
TEST_CASE("A2 GPU executor, crash: as its worker") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    ordeal x{{}, seed};
    const auto came = x.suffer([&] { x.where.kill_part(); });
    CHECK_FALSE(came.given_up);
    CHECK(came.epochs >= 1);
  }
}

TEST_CASE("A2 control link, a short silence: nobody is lost") {
  // Less than the time for two answers: of 300 ms for those without state, of 700 ms for KV.
  for (const auto& [role, silence] :
       {std::pair{worker_role::model, 250ms}, std::pair{worker_role::attention, 600ms}})
    each_seed(
        role, [silence = silence](auto&, auto& who) { who.partition(silence); },
        [](const auto& came) {
          CHECK(came.incarnations == 0);
          CHECK(came.recompute == 0);
        });
}
TEST_CASE("A2 data link, cut: RESET and RERUN, both ends stay") {
  for (const auto role : {worker_role::model, worker_role::attention}) {
    const auto epochs = each_seed(
        role, [](auto&, auto& who) { who.cut_link(); },
        [](const auto& came) {
          CHECK(came.incarnations == 0);
          CHECK(came.recompute == 0);
        });
    CHECK(epochs > 0); // of a link that nobody used, nobody knows
  }
}
TEST_CASE("A2 data link, closed by one end: RESET and RERUN, both ends stay") {
  for (const auto role : {worker_role::model, worker_role::attention})
    each_seed(
        role, [](auto&, auto& who) { who.injure("partition"); },
        [](const auto& came) {
          CHECK(came.incarnations == 0);
          CHECK(came.recompute == 0);
        });
}

} // namespace lamella::simulation
