// Pools that change their sizes: what workers are told, and what is refused.
#include "actors/protocol/pools.hpp"
#include "tests/actors/membership/scaled_world.hpp"

namespace lamella::actors::test {

TEST_CASE_FIXTURE(scaled_world, "L-M03 scale out: the next epoch is opened beside, KV moves, and "
                                "the one before is closed when the pipeline has moved") {
  CHECK(resize("attention", 4) == "under way");
  REQUIRE(resized.size() == 1);
  CHECK(resized[0].contains({worker_role::attention, 3}));
  CHECK(due.empty());
  auto a2 = join("attention");
  CHECK(due.empty()); // one is missing
  auto a3 = join("attention");
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 2);
  const auto& x = opened[1];
  CHECK(x.beside == 1);
  CHECK(x.sizes.attention == 4);
  CHECK(x.sizes_before.attention == 2);
  CHECK(x.shards.size() == 4);
  CHECK(x.lenders.size() == 2);
  CHECK(x.empty == std::vector<uint32_t>{0, 1, 2, 3}); // each stores fewer heads than before
  const auto& order = a1.book->orders.back();
  CHECK(order.beside == 1);
  CHECK(order.number == 1);
  CHECK(order.lender == 3); // behind a replica, a prefill worker and another lender
  CHECK(a2.book->orders.back().lender == no_part);
  CHECK(a0.book->closed.empty());
  CHECK(change(1).state == "under way");
  settled();
  CHECK(a0.book->closed == std::vector<uint64_t>{1});
  CHECK(change(1).state == "done");
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 scale in: who lends and has no part goes afterwards") {
  CHECK(resize("attention", 1) == "under way");
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].shards.size() == 1);
  CHECK(opened[1].lenders.size() == 2);
  CHECK(a1.book->orders.back().number == no_part);
  CHECK(a1.book->left.empty());
  settled();
  CHECK(a1.book->left == std::vector<std::string>{"its pool was scaled in"});
  CHECK(resized.back().size() == 3);
  CHECK(missing.back().empty());
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 other KV of each shard: the same seats get other caches, to "
                                "which the KV of these moves") {
  CHECK(resize("attention", 2, 300) == "under way");
  CHECK(change(1).kv_bytes == 0);
  CHECK(change(1).to_kv_bytes == 300);
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 2);
  const auto& x = opened[1];
  CHECK(x.beside == 1);
  CHECK(x.shards.size() == 2);
  CHECK(x.lenders.size() == 2);
  CHECK(x.empty == std::vector<uint32_t>{0, 1});
  CHECK(x.layout.slots_of(0) == 300);
  CHECK(x.layout_before.slots_of(0) == 200);
  CHECK(resize("attention", 2, 400).find("attention 2 -> 2 with 300 bytes of KV each")
        != std::string::npos); // one change at a time
  settled();
  CHECK(change(1).state == "done");
  CHECK(change(1).kv_bytes == 300);
  CHECK(resize("attention", 2, 300) == "done"); // it has them
  CHECK(resize("attention", 2, 0) == "under way");
  want_next();
  settled();
  CHECK(change(1).kv_bytes == 0);
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 other KV of each shard and more of them are one change, and "
                                "are rolled back together") {
  CHECK(resize("attention", 4, 300) == "under way");
  CHECK(due.empty()); // two are missing
  advance(2min, 1s);
  CHECK(change(1).state == "rolled back");
  CHECK(change(1).kv_bytes == 0);
  CHECK(resize("attention", 2, 0) == "done");
  CHECK(resize("attention", 2, 300) == "under way");
  REQUIRE(due.size() == 1);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 other KV alone leaves a pool the size that it got by hand") {
  CHECK(resize("attention", 1) == "under way");
  want_next();
  settled();
  REQUIRE(change(1).state == "done");
  CHECK(resize("attention", members_as_they_are, 300) == "under way");
  CHECK(change(1).from == 1);
  CHECK(change(1).to == 1);
  want_next();
  CHECK(opened.back().shards.size() == 1);
  settled();
  CHECK(change(1).kv_bytes == 300);
  CHECK(resize("attention", members_as_they_are, 300) == "done");
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 prefill workers get other KV of their own; replicas have "
                                "none") {
  CHECK(resize("model", 1, 300).find("replicas have no KV") != std::string::npos);
  CHECK(resize("prefill", 1, 50) == "under way");
  REQUIRE(due.size() == 1);
  want_next();
  CHECK(opened[1].lenders.empty());
  CHECK(prefill.book->orders.back().pool.own_slots == 50);
  settled();
  CHECK(change(2).state == "done");
  CHECK(change(2).kv_bytes == 50);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 unequal tables: an epoch of the same sizes, with lenders") {
  caf::anon_send(members, pool_balance{7}); // of another epoch
  settle();
  CHECK(due.empty());
  caf::anon_send(members, pool_balance{1});
  settle();
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].level);
  CHECK(opened[1].lenders.size() == 2);
  CHECK(opened[1].empty.empty());
  CHECK(opened[1].sizes == opened[1].sizes_before);
  settled();
  CHECK(due.size() == 1); // once
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 a change that cannot be is refused with its reason") {
  CHECK(says(resize("attention", 5), "12 heads"));
  CHECK(says(resize("attention", 0), "cannot be empty"));
  CHECK(says(resize("attention", 100'000), "at most"));
  CHECK(says(resize("kv", 1), "there is no pool 'kv'"));
  CHECK(resize("attention", 2) == "done");
  CHECK(resize("attention", 4) == "under way");
  CHECK(says(resize("model", 2), "another change is under way: attention 2 -> 4"));
  CHECK(says(drain("nobody"), "there is no worker"));
  CHECK(opened.size() == 1);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 another size takes the place of a change that waits") {
  CHECK(resize("attention", 4) == "under way");
  auto a2 = join("attention");
  CHECK(resize("attention", 4) == "under way"); // asked again
  CHECK(says(resize("attention", 5), "12 heads"));
  CHECK(change(1).state == "under way");
  CHECK(a2.book->left.empty());
  CHECK(resize("attention", 2) == "done"); // taken back
  CHECK(change(1).state == "rolled back");
  CHECK(says(change(1).reason, "another size"));
  CHECK(a2.book->left == std::vector<std::string>{"its pool was scaled in"});
  CHECK(resize("attention", 4) == "under way");
  CHECK(resize("attention", 1) == "under way");
  want_next();
  REQUIRE(opened.size() == 2);
  CHECK(says(resize("attention", 2), "another change is under way: attention 2 -> 1"));
  settled();
  CHECK(change(1).state == "done");
  CHECK(change(1).to == 1);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 a member that never comes up: rolled back, and told") {
  CHECK(resize("attention", 4) == "under way");
  auto a2 = join("attention");
  advance(61s, 1s);
  CHECK(change(1).state == "rolled back");
  CHECK(says(change(1).reason, "attention/3"));
  CHECK(a2.book->left == std::vector<std::string>{"its pool was scaled in"});
  CHECK(a0.book->left.empty());
  CHECK(opened.size() == 1);
  CHECK(resize("model", 2) == "under way"); // others go on
}

TEST_CASE_FIXTURE(scaled_world, "L-M26 a loss while the next epoch is prepared is a loss like any "
                                "other, with the KV of the epoch that served") {
  CHECK(resize("attention", 1) == "under way");
  want_next();
  REQUIRE(opened.size() == 2);
  end(prefill.worker);
  REQUIRE(lost.size() == 1);
  CHECK(a0.book->closed.size() == 2); // both epochs
  want_epoch(1);                      // its pipeline is of the first one
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == 0);
  CHECK(opened[2].sizes.attention == 2);
  CHECK(opened[2].shards.size() == 2);
}

TEST_CASE_FIXTURE(scaled_world,
                  "L-M25 a pipeline that broke while it moved is made anew, and moves "
                  "then") {
  CHECK(resize("attention", 1) == "under way");
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 2);
  want_epoch(1); // it could not go on, and asks for another one
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == 0);
  CHECK(opened[2].shards.size() == 2);
  CHECK(due.size() == 1);
  advance(3s, 1s);
  REQUIRE(due.size() == 2);
  want_next();
  REQUIRE(opened.size() == 4);
  CHECK(opened[3].shards.size() == 1);
  settled();
  CHECK(change(1).state == "done");
}

TEST_CASE_FIXTURE(short_world, "A2 L-M26 a shard is lost and nobody takes its part: the other one "
                               "serves alone, with the memory it had, until somebody comes") {
  end(a1.worker);
  REQUIRE(lost.size() == 1);
  want_epoch();
  advance(1s, 100ms);
  CHECK(opened.size() == 1); // whoever comes back at once gets its part
  CHECK(lacking.empty());    // requests wait
  advance(1s, 100ms);
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].shards.size() == 1);
  CHECK(opened[1].layout.largest() == 100);
  CHECK(lacking.empty());
  CHECK(opened[1].empty == std::vector<uint32_t>{0});
  CHECK(change(1).from == 1);
  CHECK(change(1).to == 2);
  CHECK(change(1).state == "short");
  auto a2 = join("attention");
  REQUIRE(due.size() == 1);
  want_next();
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == opened[1].epoch);
  CHECK(opened[2].shards.size() == 2);
  CHECK(opened[2].layout.largest() == 200);
  settled();
  CHECK(change(1).state == "none");
  CHECK(a2.book->left.empty());
}

TEST_CASE_FIXTURE(short_world,
                  "A2 a shard that is back in time gets its part, and no pool shrinks") {
  end(a1.worker);
  want_epoch();
  advance(1s, 100ms);
  auto a2 = join("attention");
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].shards.size() == 2);
  advance(3s, 100ms);
  CHECK(opened.size() == 2);
}

TEST_CASE_FIXTURE(short_world, "A2 a lost shard has its time to come back, however long no epoch "
                               "was possible before for another reason") {
  end(model.worker);
  want_epoch();
  advance(10s, 100ms);
  end(a1.worker);
  join("model");
  CHECK(opened.size() == 1);
  advance(1s, 100ms);
  join("attention");
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].shards.size() == 2);
}

TEST_CASE_FIXTURE(short_world,
                  "A2 the time of a lost shard runs on while its successors end before "
                  "they have loaded, and the others serve") {
  end(a1.worker);
  want_epoch();
  for (int look = 0; look < 3; ++look) {
    advance(400ms, 100ms);
    auto next = join("attention", 77, false);
    CHECK(next.grant->index == 1);
    end(next.joiner);
  }
  CHECK(opened.size() == 1);
  advance(800ms, 100ms);
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].shards.size() == 1);
}

TEST_CASE("A2 each lost shard has its time to come back, whenever the one before was lost") {
  scaled_world w{50}; // each shard of three serves a request alone
  CHECK(w.resize("attention", 3) == "under way");
  auto a2 = w.join("attention");
  w.want_next();
  w.settled();
  w.end(w.a0.worker);
  w.want_epoch();
  w.advance(1s, 100ms);
  w.end(w.a1.worker);
  w.advance(1s, 100ms);
  CHECK(w.opened.size() == 2);
  w.advance(1s, 100ms);
  REQUIRE(w.opened.size() == 3);
  CHECK(w.opened[2].shards.size() == 1);
}

TEST_CASE(
    "A8 a shard of this process that fails for good ends a service that cannot do without it") {
  const auto given_up = [](uint32_t least_slots) {
    scaled_world w{least_slots};
    w.end(w.a1.worker);
    w.want_epoch();
    caf::anon_send(w.members, seat_failing{"attention", 1, "no device", 6, true});
    w.settle();
    return w.hopeless;
  };
  CHECK(given_up(100) == std::nullopt); // one shard stores a request
  CHECK(given_up(150) == "attention/1: no device, 6 times in a row");
}

TEST_CASE("A2 a pool that would be too small for a request waits for its shard") {
  scaled_world w{150};
  w.end(w.a1.worker);
  w.want_epoch();
  w.advance(10s, 100ms);
  CHECK(w.opened.size() == 1);
}

TEST_CASE_FIXTURE(scaled_world, "L-M25 a pipeline that stays: the epoch it was offered is closed") {
  CHECK(resize("attention", 1) == "under way");
  want_next();
  settled(false);
  CHECK(a0.book->closed == std::vector<uint64_t>{2});
  CHECK(change(1).state == "under way");
  due.clear();
  advance(3s, 100ms);
  CHECK(due.size() == 1); // once more
}

TEST_CASE_FIXTURE(scaled_world,
                  "L-M03 L-M26 memory for the KV of one epoch: the next one is opened "
                  "on its own, at the new size, and nobody is lost") {
  CHECK(resize("attention", 1) == "under way");
  want_next();
  REQUIRE(opened.size() == 2);
  settled(false, true);
  CHECK(change(1).reason == "its KV is computed again: no");
  want_epoch(1);
  REQUIRE(opened.size() == 3);
  CHECK(opened[2].beside == 0);
  CHECK(opened[2].sizes.attention == 1);
  CHECK(opened[2].empty == std::vector<uint32_t>{0});
  CHECK(a0.book->closed == std::vector<uint64_t>{2, 1});
  advance(1s, 100ms);
  CHECK(change(1).state == "done");
  CHECK(lost.empty());
  CHECK(a1.book->left == std::vector<std::string>{"its pool was scaled in"});
  // Later changes are tried beside again.
  CHECK(resize("attention", 2) == "under way");
  join("attention");
  want_next();
  CHECK(opened.back().beside != 0);
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 L-M26 a device without room for a second cache: likewise") {
  a0.book->full = true;
  CHECK(resize("attention", 1) == "under way");
  want_next();
  CHECK(opened.size() == 1);
  CHECK(says(change(1).reason, "none for its KV"));
  CHECK(lost.empty());
  CHECK(a0.book->closed == std::vector<uint64_t>{2}); // the one that cannot be
  want_epoch();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].beside == 0);
  CHECK(opened[1].sizes.attention == 1);
  advance(1s, 100ms);
  CHECK(change(1).state == "done");
}

TEST_CASE_FIXTURE(scaled_world, "L-M03 tables are not levelled where memory has no room for it") {
  a0.book->full = true;
  caf::anon_send(members, pool_balance{1});
  settle();
  want_next();
  CHECK(opened.size() == 1);
  due.clear();
  advance(3s, 100ms);
  CHECK(due.empty()); // not again
  CHECK(lost.empty());
  CHECK(a0.book->closed == std::vector<uint64_t>{2});
}

} // namespace lamella::actors::test
