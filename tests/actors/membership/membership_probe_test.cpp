// Workers that say nothing: suspected, asked again, and given up before their connection is.
#include "actors/protocol/prefills.hpp"
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
