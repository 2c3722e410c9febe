// Workers that say nothing: suspected, asked again, and given up before their connection is.
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/status.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

struct world : membership_world {
  world() : membership_world{[](membership_config& m) { m.dead = 1s; }} {
    want_epoch();
    model = join("model");
    shard = join("attention");
    join("attention");
    join("prefill");
    REQUIRE(opened.size() == 1);
    advance(2s, 10ms);
    REQUIRE(lost.empty());
  }

  /// So long it takes until somebody more is lost.
  caf::timespan until_lost() {
    const auto before = lost.size();
    caf::timespan took{0};
    for (; lost.size() == before && took < 5s; took += 10ms) advance(10ms, 10ms);
    return took;
  }

  process model, shard;
};

} // namespace

TEST_CASE_FIXTURE(world, "reliability A1: who answers nothing is given up, before it is dead") {
  SUBCASE("a replica") {
    model.book->deaf = 1000;
    const auto took = until_lost();
    CHECK(took > 300ms);
    CHECK(took <= 570ms);
    CHECK(says(lost.back().second, "model/0"));
    CHECK(model.book->left.size() == 1);
  }
  SUBCASE("a shard, which gets more time") {
    shard.book->deaf = 1000;
    const auto took = until_lost();
    CHECK(took > 700ms);
    CHECK(took <= 970ms);
    CHECK(says(lost.back().second, "sent no reply for 700 ms"));
  }
}

TEST_CASE("reliability A1: who waits for processors is asked for longer, until it is dead") {
  std::chrono::nanoseconds waited{0};
  bool known = true, waits = true;
  membership_world w{[&](membership_config& m) {
    m.dead = 1s;
    m.waited_of = [&](const worker_info&) {
      if (waits) waited += 60ms; // of each 150 that pass between two questions
      return known ? std::optional{waited} : std::nullopt;
    };
  }};
  w.want_epoch();
  auto model = w.join("model");
  w.join("attention");
  w.join("attention");
  w.join("prefill");
  REQUIRE(w.opened.size() == 1);
  w.advance(2s, 10ms);
  SUBCASE("it answers at last") {
    model.book->deaf = 4;
    w.advance(3s, 10ms);
    CHECK(model.book->deaf == 0);
    CHECK(w.lost.empty());
  }
  SUBCASE("it never answers") {
    model.book->deaf = 1000;
    w.advance(700ms, 10ms);
    CHECK(w.lost.empty());
    w.advance(600ms, 10ms);
    REQUIRE(w.lost.size() == 1);
    CHECK(says(w.lost.back().second, "sent no reply for 900 ms"));
  }
  SUBCASE("it hangs beside a machine that has nothing to do") {
    waits = false;
    model.book->deaf = 1000;
    w.advance(570ms, 10ms);
    CHECK(w.lost.size() == 1);
  }
  SUBCASE("nobody knows") {
    known = false;
    model.book->deaf = 1000;
    w.advance(570ms, 10ms);
    CHECK(w.lost.size() == 1);
  }
}

TEST_CASE_FIXTURE(world, "reliability A1: who answers the second question stays") {
  for (int i = 0; i < 5; ++i) {
    model.book->deaf = shard.book->deaf = 1;
    advance(1500ms, 10ms);
    CHECK(model.book->deaf == 0);
  }
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(world, "reliability A1: too many false alarms give a role more time") {
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    model.book->deaf = 1000;
    CHECK(until_lost() <= 570ms);
    want_epoch();
    model = join("model"); // the same process
    REQUIRE(opened.size() == static_cast<size_t>(i) + 2);
  }
  model.book->deaf = 1000;
  const auto took = until_lost();
  CHECK(took > 600ms);
  CHECK(took <= 870ms);
}

TEST_CASE("reliability A1: a shard that is silent again and again rests while the spare serves") {
  membership_world w{[](membership_config& m) {
    m.dead = 1s;
    m.seats.add(worker_role::attention, 1); // a spare
  }};
  w.want_epoch();
  const auto sits_down = [&](const char* role, uint32_t pid) {
    w.pid = pid;
    w.name = "worker-" + std::to_string(pid);
    return w.join(role);
  };
  sits_down("model", 1);
  auto crawls = sits_down("attention", 2);
  sits_down("attention", 3);
  sits_down("prefill", 4);
  REQUIRE(w.opened.size() == 1);
  auto spare = sits_down("attention", 5);
  uint32_t of_spare = 5;
  for (const auto rest : {500ms, 1000ms, 2000ms, 4000ms}) {
    CAPTURE(rest.count());
    crawls.book->deaf = 1000;
    const auto before = w.lost.size();
    for (int i = 0; i < 500 && w.lost.size() == before; ++i) w.advance(10ms, 10ms);
    REQUIRE(
        says(w.lost.back().second, "sent no reply for 700 ms")); // never more: others wait for it
    w.want_epoch();
    const auto ready = w.ready;
    crawls = sits_down("attention", 2);
    w.advance(rest - 300ms, 10ms);
    CHECK(w.ready == ready);
    w.advance(600ms, 10ms);
    CHECK(w.ready == ready + 1);
    // The other one ends and comes back as the spare; the one that crawls has a part again.
    w.end(spare.worker);
    w.want_epoch();
    spare = sits_down("attention", of_spare = of_spare + 10);
    w.advance(1s, 10ms);
  }
}

TEST_CASE_FIXTURE(world, "reliability A1: nobody is given up while an epoch is being opened") {
  end(shard.worker);
  model.book->silent = true; // it takes long
  want_epoch();
  join("attention");
  model.book->deaf = 1000;
  advance(10s, 100ms);
  CHECK(model.book->left.empty());
  advance(25s, 100ms); // the order has its own deadline
  CHECK(model.book->left.size() == 1);
}

} // namespace lamella::actors::test
