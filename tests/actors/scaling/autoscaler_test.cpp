// The sizes of pools follow the load: what AUTOSCALER sees, and whom it tells.
#include "actors/shared/events.hpp"
#include "scheduler/scaling_text.hpp"
#include "tests/actors/scaling/scaled_pools.hpp"
#include "tests/scratch_folder.hpp"

#include <fstream>

namespace lamella::actors::test {

TEST_CASE_FIXTURE(scaled, "L-M19: the autoscaler asks for a member where KV is short, and for the "
                          "next one when that has come") {
  begin();
  pass(30s);
  CHECK(asked().empty());
  CHECK(wishes("attention", 2));
  use(0.9);
  pass(8s);
  REQUIRE(asked() == sizes{3});
  CHECK(members->resizes.front().pool == "attention");
  pass(60s); // the change takes its time
  CHECK(asked() == sizes{3});
  CHECK(wishes("attention", 3));
  members->end("attention", "done");
  pass(5s); // of its cool-down
  CHECK(asked() == sizes{3});
  pass(12s);
  CHECK(asked() == sizes{3, 4});
  members->end("attention", "done");
  pass(60s); // it has as many as it may have
  CHECK(asked() == sizes{3, 4});
  CHECK(wishes("attention", 4));
}

TEST_CASE_FIXTURE(scaled, "L-M19: a cell whose change was rolled back has the size that it had") {
  have_two_cells();
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 4, 4, "none", {}},
                             {"attention/far", 2, 4, "rolled back", "nobody came"},
                             {"attention/near", 2, 2, "none", {}},
                             {"prefill", 1, 1, "none", {}}};
  begin();
  allocator->usage.slots = {1000, 1000};
  allocator->usage.used = {950, 800};
  for (int i = 0; i < 30 && members->resizes.empty(); ++i) pass(1s);
  REQUIRE(!members->resizes.empty());
  CHECK(members->resizes.front().pool == "attention/far");
  CHECK(members->resizes.front().members == 4); // once more
}

TEST_CASE_FIXTURE(scaled, "L-M19 a pool that is short of lost workers asks for no more of them") {
  members->change_of("attention") = {"attention", 1, 2, "short", {}};
  begin();
  use(0.9);
  pass(60s);
  for (const auto& x : asked()) CHECK(x <= 2);
}

TEST_CASE_FIXTURE(scaled, "L-M19: of a pool with cells the fullest one grows, to its next size") {
  have_two_cells();
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 4, 4, "none", {}},
                             {"attention/far", 2, 2, "none", {}},
                             {"attention/near", 2, 2, "none", {}},
                             {"prefill", 1, 1, "none", {}}};
  begin();
  allocator->usage.slots = {1000, 1000};
  allocator->usage.used = {800, 950};
  for (int i = 0; i < 30 && members->resizes.empty(); ++i) pass(1s);
  REQUIRE(!members->resizes.empty());
  CHECK(members->resizes.front().pool == "attention/near");
  CHECK(members->resizes.front().members == 4); // the next divisor of eight
  members->resizes.clear();
  members->end("attention/near", "done");
  members->change_of("attention") = {"attention", 6, 6, "done", {}};
  allocator->usage.slots = {1000, 2000};
  allocator->usage.used = {950, 1900};
  for (int i = 0; i < 60 && members->resizes.empty(); ++i) pass(1s);
  REQUIRE(!members->resizes.empty());
  CHECK(members->resizes.front().pool == "attention/far");
}

TEST_CASE_FIXTURE(scaled, "L-M19 L-M24 a cell by heads skips no size that the KV in use needs") {
  have_two_cells();
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 8, 8, "none", {}},
                             {"attention/far", 8, 8, "none", {}},
                             {"attention/near", 0, 0, "none", {}},
                             {"prefill", 1, 1, "none", {}}};
  begin();
  allocator->usage.slots = {8000, 0};
  allocator->usage.used = {3600, 0}; // seven members would do, and four would not
  pass(200s);
  CHECK(asked().empty());
  allocator->usage.used = {2800, 0};
  for (int i = 0; i < 100 && members->resizes.empty(); ++i) pass(1s);
  CHECK(asked() == sizes{4});
}

TEST_CASE_FIXTURE(scaled,
                  "L-M19 a cell keeps a member whose KV is needed, however few others have") {
  have_two_cells();
  bool near_stays = false;
  SUBCASE("another one loses its own") {}
  SUBCASE("so does the other one, by its own bound") {
    near_stays = true;
    options.pools.attention.cells["near"].least = 2;
  }
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 4, 4, "none", {}},
                             {"attention/far", 2, 2, "none", {}},
                             {"attention/near", 2, 2, "none", {}},
                             {"prefill", 1, 1, "none", {}}};
  begin();
  allocator->usage.slots = {6000, 1000};
  allocator->usage.used = {2300, 600}; // too much for the 4000 slots that would be left
  if (near_stays) {
    pass(200s);
    CHECK(asked().empty());
    allocator->usage.used = {2200, 600};
  }
  for (int i = 0; i < 100 && members->resizes.empty(); ++i) pass(1s);
  REQUIRE(asked() == sizes{1});
  CHECK(members->resizes.front().pool == (near_stays ? "attention/far" : "attention/near"));
}

TEST_CASE_FIXTURE(scaled, "The autoscaler sees KV that is waited for, however its use goes up and "
                          "down, until nobody waits") {
  allocator->usage.wanted = 700;
  begin();
  for (int i = 0; i < 10; ++i) { // a sequence ends, the next one gets its slots
    use(i % 2 == 0 ? 0.6 : 0.9);
    pass(1s);
  }
  CHECK(asked().empty()); // nobody waits any more: the allocator does not hear of that
  scheduler->status.waiting = 1;
  for (int i = 0; i < 10; ++i) {
    use(i % 2 == 0 ? 0.6 : 0.9);
    pass(1s);
  }
  CHECK(asked() == sizes{3});
}

TEST_CASE_FIXTURE(scaled, "The autoscaler sees how long the oldest prompt has waited") {
  options.pools.model.placement = config::placement::local;
  options.pools.model.members = 1;
  options.pools.model.most = 2;
  scheduler->status.waiting = 1;
  begin();
  scheduler->status.oldest_ms = 4900;
  pass(20s);
  CHECK(asked().empty());
  scheduler->status.oldest_ms = 5100;
  pass(20s);
  CHECK(asked() == sizes{2});
  CHECK(members->resizes.front().pool == "model");
}

TEST_CASE_FIXTURE(scaled, "L-M19: the autoscaler gives members back, as few as the pool keeps") {
  options.pools.attention.least = 2;
  members->change_of("attention") = {"attention", 3, 3, "none", {}};
  use(0.1);
  begin();
  pass(59s);
  CHECK(asked().empty());
  pass(40s);
  CHECK(asked() == sizes{2});
  members->end("attention", "done");
  pass(300s);
  CHECK(asked() == sizes{2});
}

TEST_CASE_FIXTURE(scaled, "A pool of other hosts gets a wish and is not changed") {
  options.pools.attention.placement = config::placement::remote;
  const auto told = actors::events().after(0).newest;
  begin();
  use(0.9);
  pass(60s);
  CHECK(asked().empty());
  CHECK(wishes("attention", 3));
  const auto page = actors::events().after(told);
  REQUIRE(page.events.size() == 2); // that it is as large as it should be, and that it is not
  CHECK(
      page.events.back().text()
      == "pool wish pool=attention members=2 wish=3 reason=\"KV in use is 90 % of the slots, above "
         "80 %\"");
  CHECK(wishes("model", 0));                                         // it is not scaled
  members->change_of("attention") = {"attention", 2, 3, "done", {}}; // somebody has followed
  use(0.6);
  pass(60s);
  CHECK(asked().empty());
  CHECK(wishes("attention", 3));
}

TEST_CASE_FIXTURE(scaled, "The autoscaler begins nothing while any pool changes") {
  members->change_of("model") = {"model", 1, 2, "under way", {}}; // by an operator
  begin();
  use(0.9);
  pass(60s);
  CHECK(asked().empty());
  members->end("model", "rolled back");
  pass(20s);
  CHECK(asked() == sizes{3});
}

TEST_CASE_FIXTURE(scaled, "A step that is refused is asked for again after a cool-down") {
  members->refuses = true;
  begin();
  use(0.9);
  pass(12s);
  CHECK(asked() == sizes{3});
  pass(14s);
  CHECK(asked() == sizes{3});
  pass(20s);
  CHECK(asked() == sizes{3, 3});
}

TEST_CASE_FIXTURE(scaled, "L-M19 a step that was rolled back is asked for again ever later, until "
                          "one is done") {
  begin();
  use(0.9);
  pass(12s);
  REQUIRE(asked() == sizes{3});
  members->end("attention", "rolled back");
  pass(18s); // longer than a cool-down
  CHECK(asked() == sizes{3});
  pass(6s);
  CHECK(asked() == sizes{3, 3});
  members->end("attention", "rolled back");
  pass(38s);
  CHECK(asked() == sizes{3, 3});
  pass(6s);
  CHECK(asked() == sizes{3, 3, 3});
  members->end("attention", "done");
  pass(14s);
  CHECK(asked() == sizes{3, 3, 3, 4});
  members->end("attention", "rolled back");
  pass(24s);
  CHECK(asked() == sizes{3, 3, 3, 4, 4});
}

TEST_CASE_FIXTURE(scaled, "L-M19 a pool whose step is refused or rolled back leaves the next step "
                          "to others") {
  auto& model = options.pools.model;
  model.placement = config::placement::local;
  model.most = 4;
  options.autoscale.tbt_target = 50ms;
  SUBCASE("refused") { members->refuses = true; }
  SUBCASE("rolled back") { members->rolls_back = true; }
  begin();
  use(0.9); // attention comes first
  be_late(30, 9, 2);
  REQUIRE(members->resizes.size() > 1);
  CHECK(members->resizes[0].pool == "attention");
  CHECK(members->resizes[1].pool == "model");
}

TEST_CASE_FIXTURE(scaled, "L-M19 cells that have no next size leave the other pools their turn") {
  auto& model = options.pools.model;
  model.placement = config::placement::local;
  model.most = 4;
  have_two_cells();
  options.autoscale.tbt_target = 50ms;
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 16, 16, "none", {}},
                             {"attention/far", 8, 8, "none", {}},
                             {"attention/near", 8, 8, "none", {}},
                             {"prefill", 1, 1, "none", {}}};
  options.pools.attention.most = 20; // of eight heads
  begin();
  use(0.9);
  be_late(20, 9, 2);
  REQUIRE(!members->resizes.empty());
  CHECK(members->resizes.front().pool == "model");
}

TEST_CASE_FIXTURE(scaled, "The autoscaler begins nothing while a cell changes") {
  have_two_cells();
  members->status.changes = {{"model", 1, 1, "none", {}},
                             {"attention", 4, 6, "under way", {}},
                             {"attention/far", 2, 2, "none", {}},
                             {"attention/near", 2, 4, "under way", {}},
                             {"prefill", 1, 1, "none", {}}};
  begin();
  use(0.95);
  pass(60s);
  CHECK(asked().empty());
}

TEST_CASE_FIXTURE(scaled, "Late tokens make the pool larger that is behind: shards whose attention "
                          "takes longer than a turn of the replicas") {
  options.autoscale.tbt_target = 50ms;
  begin();
  be_late(19, 2, 9);
  CHECK(asked() == sizes{3});
}

TEST_CASE_FIXTURE(scaled,
                  "L-M19: replicas that run slices in turn are each busy for a part of t_m") {
  options.autoscale.tbt_target = 50ms;
  members->change_of("model") = {"model", 2, 2, "none", {}};
  server->batches.resize(3);
  // An iteration takes 5 ms at each of two replicas: a turn is 10 ms / (3 - 1). Attention keeps up
  // with 4 ms, and not with 6.
  uint64_t attention_ms = 4;
  bool grows = false;
  SUBCASE("attention keeps up") { members->status.pipeline = {true, 3}; }
  SUBCASE("attention does not") {
    members->status.pipeline = {true, 3};
    attention_ms = 6;
    grows = true;
  }
  SUBCASE("attention would not, if batches stayed on their replicas") { grows = true; }
  begin();
  for (uint64_t i = 1; i < 20; ++i) {
    members->status.workers.resize(4);
    for (uint32_t k = 0; k < 4; ++k) {
      auto& x = members->status.workers[k];
      x.role = k < 2 ? "model" : "attention";
      x.seat = x.role + "/" + std::to_string(k);
      x.work = {100 * i, 0, 100 * i * (k < 2 ? 5 : attention_ms) * 1'000'000};
    }
    for (int k = 0; k < 100; ++k) load->token_gap(sched.clock().now(), 80ms);
    load->tokens(sched.clock().now(), 100);
    pass(1s);
  }
  CHECK(asked() == (grows ? sizes{3} : sizes{}));
}

TEST_CASE_FIXTURE(scaled, "Without a service the autoscaler waits") {
  begin(false);
  use(0.9);
  pass(60s);
  CHECK(asked().empty());
}

TEST_CASE_FIXTURE(scaled, "What the autoscaler has seen can be judged again") {
  tests::scratch_folder folder;
  options.autoscale.trace_file = folder / "looks.jsonl";
  options.autoscale.kv_high_percent = 70;
  begin();
  scheduler->status.waiting = 3;
  pass(5s);
  std::ifstream in{options.autoscale.trace_file};
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(std::get<scheduler::scaling_settings>(scheduler::scaling_line_of(line)).kv_high
        == doctest::Approx(0.7));
  size_t looks = 0;
  scheduler::scaling_look last;
  for (; std::getline(in, line); ++looks)
    last = std::get<scheduler::scaling_look>(scheduler::scaling_line_of(line));
  CHECK(looks >= 5);
  CHECK(last.queue == 3);
  CHECK(last.batches == 2);
  CHECK(last.kv_use() == doctest::Approx(0.6));
  const auto& shards = last.pools[scheduler::scaled_pool::attention];
  CHECK((shards.members == 2 && shards.least == 1 && shards.most == 4 && shards.acts));
  CHECK_FALSE(last.pools[scheduler::scaled_pool::prefill].exists());
}

TEST_CASE("Shards by head are scaled to divisors of the model's KV heads") {
  config::settings x;
  x.pools.attention.most = 8;
  const auto pools = scaled_pools_of(x, 8);
  const auto& shards = pools[scheduler::scaled_pool::attention];
  CHECK((shards.heads == 8 && shards.allows(4) && !shards.allows(3)));
  CHECK(pools[scheduler::scaled_pool::model].most == 1);
  CHECK_FALSE(pools[scheduler::scaled_pool::model].acts);
}

} // namespace lamella::actors::test
