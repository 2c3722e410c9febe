// Workers that are drained: twice, while others are lost, and where nobody can take over.
#include "tests/actors/membership/scaled_world.hpp"

namespace lamella::actors::test {

namespace {

/// With a spare shard.
struct spare_world : scaled_world {
  spare_world() : scaled_world{0, 1}, spare{join("attention")} {}
  process spare;
};

} // namespace

TEST_CASE_FIXTURE(spare_world, "L-M03 who is drained again while a spare takes its part stays "
                               "under way, and its pool keeps its size") {
  CHECK(drain("attention/1") == "under way");
  want_next();
  REQUIRE(opened.size() == 2);
  CHECK(drain("attention/1") == "under way");
  CHECK(a1.book->left.empty());
  CHECK(change(1).to == 2);
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
  CHECK(spare.book->left.empty());
  CHECK(change(1).to == 2);
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(scaled_world,
                  "L-M03 a replica that is drained again while the pipeline leaves it "
                  "stays until it has") {
  CHECK(resize("model", 2) == "under way");
  auto second = join("model");
  want_next();
  settled();
  CHECK(drain("model/0") == "under way");
  want_next();
  CHECK(drain("model/0") == "under way");
  CHECK(model.book->left.empty());
  CHECK(lost.empty()); // both epochs go on
  settled();
  CHECK(model.book->left == std::vector<std::string>{"it was drained"});
}

TEST_CASE_FIXTURE(short_world, "L-M03 the last shard of a pool that is short of the others cannot "
                               "be drained, and the pool keeps its size") {
  end(a1.worker);
  want_epoch();
  advance(2s, 100ms);
  REQUIRE(opened.size() == 2);
  REQUIRE(change(1).state == "short");
  CHECK(says(drain("attention/0"), "no other worker can take over"));
  advance(3s, 100ms);
  CHECK(change(1).state == "short");
  CHECK(change(1).to == 2);
  auto back = join("attention");
  REQUIRE(due.size() == 1);
  want_next();
  settled();
  CHECK(change(1).state == "none");
  CHECK(a0.book->left.empty());
}

TEST_CASE_FIXTURE(spare_world,
                  "L-M26 a loss while a shard is drained leaves the KV where it is, and "
                  "the drain goes on afterwards") {
  CHECK(drain("attention/1") == "under way");
  want_next();
  REQUIRE(opened.size() == 2);
  end(prefill.worker);
  REQUIRE(lost.size() == 1);
  want_epoch(1); // its pipeline is of the first one
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == 0);
  CHECK(a1.book->orders.back().epoch == opened[2].epoch); // it plays its part on
  CHECK(a1.book->orders.back().number == 1);
  CHECK(a1.book->left.empty());
  due.clear();
  advance(3s, 100ms);
  REQUIRE(due.size() == 1);
  want_next();
  CHECK(opened.back().beside == opened[2].epoch);
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
}

TEST_CASE_FIXTURE(short_world,
                  "L-M03 a pool changes its size while another one is short of workers") {
  end(a1.worker);
  want_epoch();
  advance(2s, 100ms);
  REQUIRE(change(1).state == "short");
  due.clear();
  CHECK(resize("model", 2) == "under way");
  CHECK(change(0).state == "under way");
  auto second = join("model");
  REQUIRE(due.size() == 1);
  want_next();
  settled();
  CHECK(change(0).state == "done");
  CHECK(change(0).to == 2);
  CHECK(change(1).state == "short");
  CHECK(opened.back().shards.size() == 1);
}

TEST_CASE_FIXTURE(scaled_world,
                  "L-M03 the size that a pool has is done, whatever changes elsewhere") {
  CHECK(resize("model", 2) == "under way");
  CHECK(resize("attention", 2) == "done");
  CHECK(says(resize("attention", 1), "another change is under way"));
}

TEST_CASE("L-M03 an epoch that no worker opens in time is given up, and tried again") {
  scaled_world w{0, 2};
  auto first = w.join("attention"), second = w.join("attention");
  CHECK(w.drain("attention/1") == "under way");
  first.book->late = second.book->late = true; // their answers never come
  w.want_next();
  w.due.clear();
  w.advance(49s, 1s);
  CHECK(w.a0.book->closed.size() == 1); // one spare was lost, and the other one is asked
  CHECK(w.due.empty());
  w.advance(2s, 1s);
  CHECK(w.a0.book->closed.size() == 2);
  CHECK(w.opened.size() == 1);
  CHECK(w.lost.empty()); // the epoch that serves goes on
  w.advance(2s, 100ms);
  CHECK(w.due.size() == 1);
}

} // namespace lamella::actors::test
