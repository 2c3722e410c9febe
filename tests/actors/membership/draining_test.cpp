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

TEST_CASE_FIXTURE(spare_world, "the process of a worker that is drained ends, and one that is sent "
                               "away for another reason joins again") {
  CHECK(drain("attention/2") == "done"); // the spare
  CHECK(spare.book->left == std::vector<std::string>{"it was drained"});
  CHECK(spare.book->for_good);
  join("attention");
  CHECK(drain("attention/1") == "under way");
  want_next();
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
  CHECK(a1.book->for_good);
  model.book->fails = true;
  end(prefill.worker);
  want_epoch();
  CHECK(model.book->left.size() == 1);
  CHECK_FALSE(model.book->for_good);
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
  CHECK(resize("attention", 2) == "short"); // that is asked for already
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

TEST_CASE_FIXTURE(spare_world, "L-M03 a worker that is drained goes with the epoch that also makes "
                               "its pool larger") {
  CHECK(drain("attention/1") == "under way");
  CHECK(resize("attention", 3) == "under way");
  auto third = join("attention");
  want_next();
  settled();
  REQUIRE(opened.back().shards.size() == 3);
  CHECK(change(1).state == "done");
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
  CHECK(spare.book->left.empty());
  CHECK(third.book->left.empty());
  CHECK(lost.empty());
}

TEST_CASE("L-M03 the drain of a worker that is lost is over: its successor in the seat stays") {
  spare_world w;
  CHECK(w.drain("attention/1") == "under way");
  w.want_next();
  REQUIRE(w.opened.size() == 2);
  w.end(w.a1.worker);
  w.want_epoch(1);
  REQUIRE(w.opened.size() == 3); // the spare has its part
  auto successor = w.join("attention");
  CHECK(successor.grant->index == 1);
  w.advance(3s, 100ms);
  CHECK(successor.book->left.empty());
}

TEST_CASE("L-M03 the successor of a lost worker that was drained keeps the part that it gets") {
  spare_world w;
  CHECK(w.drain("attention/1") == "under way");
  w.end(w.spare.worker);
  w.end(w.a1.worker);
  w.want_epoch();
  auto successor = w.join("attention");
  REQUIRE(w.opened.size() == 2);
  CHECK(successor.grant->index == 1);
  w.due.clear();
  w.join("attention"); // another spare
  w.advance(3s, 100ms);
  CHECK(w.due.empty());
  CHECK(successor.book->left.empty());
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

TEST_CASE_FIXTURE(spare_world,
                  "L-M03 L-M26 a spare without memory for a second cache takes the part "
                  "of a drained shard in an epoch of its own, once") {
  spare.book->full = true;
  CHECK(drain("attention/1") == "under way");
  want_next();
  REQUIRE(opened.size() == 1);
  want_epoch(); // the pipeline is made anew
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].beside == 0);
  CHECK(spare.book->orders.back().number == 1);
  due.clear();
  advance(2s, 100ms);
  CHECK(due.empty());
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(spare_world, "L-M03 a drain is tried again where memory has no room to level "
                               "tables on the way") {
  caf::anon_send(members, pool_balance{1});
  settle();
  REQUIRE(due.size() == 1);
  CHECK(drain("attention/1") == "under way");
  spare.book->full = true;
  want_next();
  REQUIRE(opened.size() == 1);
  CHECK(lost.empty());
  due.clear();
  advance(3s, 100ms);
  REQUIRE(due.size() == 1);
  spare.book->full = false;
  want_next();
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"it was drained"});
}

TEST_CASE_FIXTURE(short_world, "L-M03 a change beside a pool that is short, without memory for a "
                               "second cache, is done in an epoch of its own") {
  end(a1.worker);
  want_epoch();
  advance(2s, 100ms);
  REQUIRE(change(1).state == "short");
  a0.book->full = true;
  CHECK(resize("model", 2) == "under way");
  auto second = join("model");
  want_next();
  REQUIRE(opened.size() == 2);
  want_epoch();
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].sizes.model == 2);
  CHECK(opened[2].sizes.attention == 1);
  advance(1s, 100ms);
  CHECK(change(0).state == "done");
}

TEST_CASE_FIXTURE(spare_world, "L-M03 a drain whose KV cannot be moved is given up after its time, "
                               "and the shard keeps its part") {
  CHECK_FALSE(drains("attention/1"));
  CHECK(drain("attention/1") == "under way");
  CHECK(drains("attention/1"));
  CHECK_FALSE(drains("attention/0"));
  for (int second = 0; second < 70; ++second) {
    if (due.size() > opened.size() - 1) {
      want_next();
      settled(false); // a copy fails
    }
    advance(1s, 100ms);
  }
  const auto tries = opened.size();
  CHECK(tries > 10);
  CHECK(due.size() == tries - 1);
  advance(1min, 1s);
  CHECK(due.size() == tries - 1);
  CHECK(a1.book->left.empty());
  CHECK_FALSE(drains("attention/1"));
  CHECK(drain("attention/1") == "under way"); // tried again when it is asked for again
  CHECK(due.size() == tries);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 a drain while the pipeline moves to another epoch for "
                                "somebody else makes its own pool smaller") {
  end(prefill.worker);
  want_epoch();
  auto back = join("prefill");
  REQUIRE(due.size() == 1);
  CHECK(drain("attention/1") == "under way");
  CHECK(change(1).to == 1);
  CHECK(says(resize("attention", 4), "another change is under way: attention 2 -> 1"));
  want_next();
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"its pool was scaled in"});
  CHECK(change(1).state == "done");
  CHECK(lost.size() == 1);
}

TEST_CASE(
    "L-M03 a drain that nobody can take over is refused, also where the pipeline is to move") {
  scaled_world w;
  w.end(w.prefill.worker);
  w.want_epoch();
  auto back = w.join("prefill");
  REQUIRE(w.due.size() == 1);
  CHECK(says(w.drain("model/0"), "no other worker can take over"));
  w.want_next();
  w.settled();
  CHECK(w.model.book->left.empty());
}

TEST_CASE_FIXTURE(scaled_world,
                  "L-M03 a worker that wants to leave beside another change is to ask "
                  "again, and an operator gets the reason") {
  CHECK(resize("model", 2) == "under way");
  CHECK(drain("attention/1", true) == ask_again);
  CHECK(says(drain("attention/1"), "another change is under way: model 1 -> 2"));
  join("model");
  want_next();
  settled();
  CHECK(drain("attention/1", true) == "under way");
}

TEST_CASE_FIXTURE(scaled_world, "L-M26 a shard that is drained while no epoch is open is no second "
                                "loss") {
  end(prefill.worker);
  REQUIRE(lost.size() == 1);
  CHECK(says(drain("attention/1"), "no epoch is open"));
  CHECK(drain("attention/1", true) == ask_again);
  next_is_late = true;
  auto second = join("prefill");
  want_epoch();
  REQUIRE(opened.size() == 1);
  CHECK(drain("attention/1", true) == ask_again); // nor does it stop the epoch from being opened
  CHECK(a1.book->closed.size() == 1);
  CHECK(a1.book->left.empty());
  end(second.worker);
  REQUIRE(opened.size() == 2);
  CHECK(a1.book->orders.back().epoch == opened[1].epoch);
  CHECK(opened[1].empty.empty());
  CHECK(drain("attention/1", true) == "under way");
}

TEST_CASE("prefill workers on replicas are members of their pool in status") {
  membership_world w{[](membership_config& m) { m.prefill_on_replicas = 2; }};
  const auto status = w.ask<system_status>(w.members, status_atom_v);
  w.settle();
  const auto& prefill = status->value.changes.back();
  CHECK(prefill.pool == "prefill");
  CHECK(prefill.state == "none");
  CHECK(prefill.to == 2);
  CHECK(prefill.reason == "on model replicas");
}

TEST_CASE("a prefill worker on a replica cannot be drained, and is told what it is") {
  membership_world w{[](membership_config& m) { m.prefill_on_replicas = 1; }};
  const auto drain = [&](const std::string& who) {
    const auto answer = w.ask<pool_change>(w.members, worker_drain{who});
    w.settle();
    return w.system.render(answer->error);
  };
  CHECK(says(drain("prefill-0"), "'prefill-0' runs on a model replica"));
  CHECK(says(drain("prefill/0"), "'prefill/0' runs on a model replica"));
  CHECK(says(drain("prefill-1"), "there is no worker 'prefill-1'"));
}

TEST_CASE_FIXTURE(scaled_world, "status leaves out links to who has left with a smaller pool") {
  using seats = std::vector<std::string>;
  model.book->peers = {{"attention/0", "shm"}, {"attention/1", "shm"}};
  const auto links = [&] {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    seats result;
    for (const auto& x : status->value.workers)
      if (x.seat == "model/0")
        for (const auto& peer : x.peers) result.push_back(peer.seat);
    return result;
  };
  CHECK(links() == seats{"attention/0", "attention/1"});
  CHECK(resize("attention", 1) == "under way");
  want_next();
  CHECK(links() == seats{"attention/0", "attention/1"}); // its KV is still copied
  settled();
  CHECK(links() == seats{"attention/0"});
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 a drained replica loses its part first, and goes then") {
  CHECK(resize("model", 2) == "under way");
  auto second = join("model");
  want_next();
  settled();
  REQUIRE(change(0).state == "done");
  due.clear();
  CHECK(drain("model/0") == "under way");
  REQUIRE(due.size() == 1);
  CHECK(model.book->left.empty());
  want_next();
  CHECK(opened.back().replicas.size() == 2); // the other one, and the prefill worker's
  settled();
  CHECK(model.book->left == std::vector<std::string>{"it was drained"});
  CHECK(lost.empty());
}

} // namespace lamella::actors::test
