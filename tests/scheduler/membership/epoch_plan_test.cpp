#include "scheduler/membership/epoch_plan.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

constexpr auto model = worker_role::model, attention = worker_role::attention,
               prefill = worker_role::prefill;

/// Two replicas, three shards, a prefill worker, five batches.
const epoch_shape shape{2, 3, {}, {}, 1, 5, 1};
const std::vector<seat> shards{{attention, 0}, {attention, 1}, {attention, 2}};
const std::set<seat> everybody{{model, 0},     {model, 1},     {attention, 0},
                               {attention, 1}, {attention, 2}, {prefill, 0}};

std::set<seat> without(std::set<seat> list, const std::vector<seat>& gone) {
  for (const auto& x : gone) list.erase(x);
  return list;
}

} // namespace

TEST_CASE("The first epoch waits for everybody but spares") {
  const auto plan = plan_epoch(shape, everybody, {}, true);
  REQUIRE(plan);
  CHECK(plan->replicas == std::vector<seat>{{model, 0}, {model, 1}, {prefill, 0}});
  CHECK(plan->shards == shards);
  CHECK(plan->decoding == 2);
  for (const auto& x : everybody) {
    CAPTURE(to_string(x));
    CHECK_FALSE(plan_epoch(shape, without(everybody, {x}), {}, true));
  }
}

TEST_CASE("L-M25 the batches of a lost replica go to those that are left") {
  const auto plan = plan_epoch(shape, without(everybody, {{model, 0}}), shards, false);
  REQUIRE(plan);
  CHECK(plan->replicas == std::vector<seat>{{model, 1}, {prefill, 0}});
  REQUIRE(plan->streams.size() == 6);
  for (uint32_t j = 0; j < 5; ++j) CHECK(plan->streams[j] == stream_place{stream_id{j}, 0});
  CHECK(plan->streams[5] == stream_place{stream_id{prefill_streams}, 1});
  CHECK(could_grow(shape, *plan, everybody));
  CHECK_FALSE(could_grow(shape, *plan, without(everybody, {{model, 0}})));
}

TEST_CASE("V-M17 a pipeline that is off has a batch for each replica, and fewer after a loss") {
  epoch_shape shape;
  shape.replicas = 3;
  shape.batches = 7;
  shape.one_each = true;
  for (const uint32_t left : {3u, 2u, 1u}) {
    const auto places = place_streams(shape, left, 0);
    CHECK(batches_of(places) == left);
    for (uint32_t j = 0; j < left; ++j)
      CHECK(places_of(places, stream_id{j}) == std::vector<uint32_t>{j});
  }
  shape.one_each = false;
  CHECK(batches_of(place_streams(shape, 2, 0)) == 7);
}

TEST_CASE("L-M17 L-M20 a batch that rotates has all replicas, and fewer after a loss") {
  auto turning = shape;
  turning.replicas = 3;
  turning.batches = 4;
  turning.rotates = true;
  auto ready = everybody;
  ready.insert({model, 2});
  const auto plan = plan_epoch(turning, ready, shards, true);
  REQUIRE(plan);
  for (uint32_t j = 0; j < 4; ++j)
    CHECK(places_of(plan->streams, stream_id{j})
          == std::vector<uint32_t>{j % 3, (j + 1) % 3, (j + 2) % 3});
  CHECK(places_of(plan->streams, stream_id{prefill_streams}) == std::vector<uint32_t>{3});
  const auto fewer = plan_epoch(turning, without(ready, {{model, 1}}), shards, false);
  REQUIRE(fewer);
  CHECK(places_of(fewer->streams, stream_id{1}) == std::vector<uint32_t>{1, 0});
  const auto one = plan_epoch(turning, without(ready, {{model, 0}, {model, 1}}), shards, false);
  REQUIRE(one);
  CHECK(places_of(one->streams, stream_id{3}) == std::vector<uint32_t>{0});
}

TEST_CASE("L-M25 prompts of a lost prefill worker run on the replicas") {
  const epoch_shape wide{2, 3, {}, {}, 2, 2, 4};
  const auto plan = plan_epoch(wide, without(everybody, {{prefill, 0}}), shards, false);
  REQUIRE(plan);
  const std::vector<stream_place> wanted{{stream_id{0}, 0},
                                         {stream_id{1}, 1},
                                         {stream_id{prefill_streams}, 0},
                                         {stream_id{prefill_streams + 1}, 1},
                                         {stream_id{prefill_streams + 2}, 0},
                                         {stream_id{prefill_streams + 3}, 1}};
  CHECK(plan->streams == wanted);
}

TEST_CASE(
    "S-M03 batches of prefill seats are behind the others, and run on replicas without them") {
  epoch_shape both{2, 3, {}, {}, 1, 2, 0};
  both.prompt_batches = 1;
  const auto plan = plan_epoch(both, everybody, {}, true);
  REQUIRE(plan);
  const std::vector<stream_place> wanted{{stream_id{0}, 0}, {stream_id{1}, 1}, {stream_id{2}, 2}};
  CHECK(plan->streams == wanted);
  CHECK(batches_of(plan->streams) == 3);
  const auto without_it = plan_epoch(both, without(everybody, {{prefill, 0}}), shards, false);
  REQUIRE(without_it);
  CHECK(without_it->streams.back() == stream_place{stream_id{2}, 0});
  both.rotates = true;
  both.batches = 3;
  const auto rotates = plan_epoch(both, everybody, {}, true);
  REQUIRE(rotates);
  CHECK(places_of(rotates->streams, stream_id{2}).size() == 2);
  CHECK(places_of(rotates->streams, stream_id{3}) == std::vector<uint32_t>{2});
}

TEST_CASE("suffixes run on decoding replicas, whoever else there is") {
  epoch_shape cached{2, 3, {}, {}, 1, 2, 1};
  cached.mixed_streams = 2;
  const auto plan = plan_epoch(cached, everybody, {}, true);
  REQUIRE(plan);
  const std::vector<stream_place> wanted{{stream_id{0}, 0},
                                         {stream_id{1}, 1},
                                         {stream_id{prefill_streams}, 2},
                                         {stream_id{prefill_streams + 1}, 0},
                                         {stream_id{prefill_streams + 2}, 1}};
  CHECK(plan->streams == wanted);
  const auto fewer = plan_epoch(cached, without(everybody, {{model, 1}}), shards, false);
  REQUIRE(fewer);
  CHECK(fewer->streams.back() == stream_place{stream_id{prefill_streams + 2}, 0});
}

TEST_CASE("L-M26 a spare takes the part of a lost shard, and keeps it when that seat is back") {
  auto ready = everybody;
  ready.insert({attention, 3});
  ready.insert({model, 2});
  const auto first = plan_epoch(shape, ready, {}, true);
  REQUIRE(first);
  CHECK(first->shards == shards); // the spare has no part
  CHECK(first->decoding == 2);
  CHECK_FALSE(could_grow(shape, *first, ready));
  const auto second = plan_epoch(shape, without(ready, {{attention, 1}}), first->shards, false);
  REQUIRE(second);
  CHECK(second->shards == std::vector<seat>{{attention, 0}, {attention, 3}, {attention, 2}});
  const auto third = plan_epoch(shape, ready, second->shards, false);
  REQUIRE(third);
  CHECK(third->shards == second->shards); // the KV is there
  CHECK_FALSE(could_grow(shape, *second, ready));
}

TEST_CASE("L-M26 without a seat for every shard, or without any replica, there is no epoch") {
  CHECK_FALSE(plan_epoch(shape, without(everybody, {{attention, 1}}), shards, false));
  CHECK_FALSE(plan_epoch(shape, without(everybody, {{model, 0}, {model, 1}}), shards, false));
}

TEST_CASE("L-M26 the parity has a seat of its own, and an epoch may do without it") {
  auto guarded = shape;
  guarded.parity = {0};
  auto all = everybody;
  CHECK_FALSE(plan_epoch(guarded, all, {}, true)); // the first epoch waits for it
  all.insert({attention, 3});
  const auto first = plan_epoch(guarded, all, {}, true);
  REQUIRE(first);
  CHECK(first->parity == std::vector<uint32_t>{0});
  const std::vector<seat> four{{attention, 0}, {attention, 1}, {attention, 2}, {attention, 3}};
  CHECK(first->shards == four);
  CHECK(part_of(*first, {attention, 3}) == "parity");
  CHECK(part_of(*first, {attention, 2}) == "shard 2");
  CHECK(part_of(*first, {attention, 4}) == "spare");
  CHECK(part_of(*first, {model, 1}) == "replica 1");
  const auto without_it = plan_epoch(guarded, without(all, {{attention, 3}}), four, false);
  REQUIRE(without_it);
  CHECK(without_it->parity.empty());
  CHECK(without_it->shards == shards);
  CHECK(part_of(*without_it, {attention, 2}) == "shard 2"); // the last, but not the parity
  CHECK(could_grow(guarded, *without_it, all));
  CHECK_FALSE(could_grow(guarded, *without_it, without(all, {{attention, 3}})));
  // A lost shard does not take the seat with the parity, which is what it comes back from.
  CHECK_FALSE(plan_epoch(guarded, without(all, {{attention, 1}}), four, false));
  all.insert({attention, 4});
  const auto spare = plan_epoch(guarded, without(all, {{attention, 1}}), four, false);
  REQUIRE(spare);
  CHECK(spare->shards
        == std::vector<seat>{{attention, 0}, {attention, 4}, {attention, 2}, {attention, 3}});
  CHECK(spare->parity.size() == 1);
  CHECK(part_of(*spare, {attention, 4}) == "shard 1"); // named by the part, not by the seat
}

TEST_CASE("A role is lacking when a part of it has neither a member nor a spare") {
  using roles = std::vector<worker_role>;
  const auto lacking = [](std::set<seat> ready) { return lacking_roles(shape, ready, shards); };
  CHECK(lacking(everybody).empty());
  CHECK(lacking(without(everybody, {{model, 1}, {prefill, 0}})).empty());
  CHECK(lacking(without(everybody, {{model, 0}, {model, 1}})) == roles{model});
  CHECK(lacking(without(everybody, {{attention, 2}})) == roles{attention});
  auto spare = without(everybody, {{attention, 2}});
  spare.insert({attention, 3});
  CHECK(lacking(spare).empty());
  CHECK(lacking({}) == roles{model, attention});
  // Whoever holds the parity does not take a part: the XOR of the rest would be lost with it.
  auto guarded = shape;
  guarded.parity = {0};
  const std::vector<seat> four{{attention, 0}, {attention, 1}, {attention, 2}, {attention, 3}};
  CHECK(lacking_roles(guarded, spare, four) == roles{attention});
  CHECK(lacking_roles(guarded, everybody, four).empty());
  // And just then there is no epoch.
  for (uint32_t some = 0; some < 1u << 7; ++some) {
    auto ready = everybody;
    ready.insert({attention, 3});
    uint32_t bit = 0;
    for (auto it = ready.begin(); it != ready.end();)
      it = (some >> bit++ & 1) != 0 ? ready.erase(it) : std::next(it);
    CAPTURE(some);
    for (const auto& x : {shape, guarded})
      CHECK(plan_epoch(x, ready, four, false).has_value() == lacking_roles(x, ready, four).empty());
  }
}

TEST_CASE("L-M03 L-M23 shards of a cell sit on the seats of its group only") {
  epoch_shape cells{1, 4, {1, 2, 1}, {"", "far", ""}};
  const seat a0{attention, 0}, a1{attention, 1}, f2{attention, 2, "far"}, f3{attention, 3, "far"},
      f4{attention, 4, "far"};
  const std::set<seat> all{{model, 0}, a0, a1, f2, f3, f4};
  const auto plan = plan_epoch(cells, all, {}, true);
  REQUIRE(plan);
  CHECK(plan->shards == std::vector<seat>{a0, f2, f3, a1});
  CHECK(part_of(*plan, f4) == "spare");
  // A spare takes the part of a worker of its group; the others stay with their KV.
  const auto next = plan_epoch(cells, without(all, {f2}), plan->shards, false);
  REQUIRE(next);
  CHECK(next->shards == std::vector<seat>{a0, f4, f3, a1});
  // It takes no part of another group.
  const auto fewer = without(all, {a1});
  CHECK_FALSE(plan_epoch(cells, fewer, plan->shards, false));
  CHECK(lacking_roles(cells, fewer, plan->shards) == std::vector{attention});
  // Nor has whoever sits in a seat of that index in another group the KV.
  const auto other = plan_epoch(cells, all, {a0, seat{attention, 4}, f3, a1}, false);
  REQUIRE(other);
  CHECK(other->shards == std::vector<seat>{a0, f2, f3, a1});
}
