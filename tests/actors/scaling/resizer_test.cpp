// Sizes of pools that a reload asked for, one change after the other.
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/scaling/resizer.hpp"
#include "tests/actors/membership/stand_in.hpp"
#include "tests/actors/stage.hpp"

#include <string>

namespace lamella::actors::test {

using namespace std::chrono_literals;
using scheduler::worker_role;

namespace {

struct world : stage {
  std::vector<pool_change> changes{{"model", 1, 1, "none", {}},
                                   {"attention", 1, 3, "under way", {}}};
  std::vector<std::string> asked;      ///< of MEMBERSHIP
  bool refuses = false, there = false; ///< the size that is asked for
  std::string refusal = "no";
  membership_actor members;
  std::shared_ptr<resize_outcomes> outcomes = std::make_shared<resize_outcomes>();

  world() { members = spawn(stand_in_membership(answers())); }
  ~world() {
    end_all();
    members = nullptr;
  }

  /// attention=3, which is under way, and then model=2.
  void start() {
    outcomes->begin();
    spawn(resizer, resizer_config{members,
                                  {{worker_role::attention, 1, 3}, {worker_role::model, 1, 2}},
                                  outcomes});
    advance(5s, 100ms);
  }

  membership_answers answers() {
    membership_answers x;
    x.resize = [this](const pool_resize& question) -> caf::result<pool_change> {
      asked.push_back(question.pool + "=" + std::to_string(question.members));
      if (refuses) return caf::make_error(ec::resize_refused, refusal);
      const pool_change answer{
          question.pool, 1, question.members, there ? "done" : "under way", {}};
      if (!there) changes[0] = answer; // one that is done at once is none
      return answer;
    };
    x.status = [this] {
      system_status status;
      status.changes = changes;
      return status;
    };
    return x;
  }
};

} // namespace

TEST_CASE_FIXTURE(world, "a reload does not wait for workers that another pool has lost") {
  changes[1] = {"attention", 1, 2, "short", "one was lost"};
  start();
  CHECK(asked == std::vector<std::string>{"model=2"});
  changes[0].state = "done";
  advance(1s, 100ms);
  CHECK_FALSE(outcomes->under_way());
}

TEST_CASE_FIXTURE(world, "the next pool of a reload changes when the one before has its size") {
  start();
  CHECK(asked.empty());
  const auto waiting = queued_changes(*outcomes);
  REQUIRE(waiting.size() == 1);
  CHECK(waiting[0].pool == "model");
  CHECK(waiting[0].to == 2);
  CHECK(waiting[0].state == "queued");
  changes[1].state = "done";
  advance(1s, 100ms);
  CHECK(asked == std::vector<std::string>{"model=2"});
  CHECK(outcomes->under_way());
  CHECK(queued_changes(*outcomes).empty());
  changes[0].state = "done";
  advance(1s, 100ms);
  CHECK_FALSE(outcomes->under_way());
  CHECK(outcomes->take_failed().empty());
}

TEST_CASE_FIXTURE(world, "what was rolled back or refused is told to the next reload, once") {
  start();
  changes[1].state = "rolled back";
  SUBCASE("the first one") {
    advance(1s, 100ms);
    CHECK(asked == std::vector<std::string>{"model=2"}); // the other goes on
    changes[0].state = "done";
  }
  SUBCASE("all") { refuses = true; }
  advance(1s, 100ms);
  CHECK_FALSE(outcomes->under_way());
  const auto failed = outcomes->take_failed();
  REQUIRE(failed.size() == (refuses ? 2 : 1));
  CHECK(failed.front().role == worker_role::attention);
  CHECK(failed.front().from == 1);
  CHECK(outcomes->take_failed().empty());
}

TEST_CASE_FIXTURE(world,
                  "a change that is refused because another one began meanwhile is asked for "
                  "again") {
  start();
  changes[1].state = "done";
  refuses = true;
  refusal = "another change is under way: prefill 1 -> 2";
  advance(1s, 100ms);
  CHECK(asked.size() > 1);
  CHECK(outcomes->under_way());
  refuses = false;
  asked.clear();
  advance(1s, 100ms);
  CHECK(asked == std::vector<std::string>{"model=2"});
  changes[0].state = "done";
  advance(1s, 100ms);
  CHECK_FALSE(outcomes->under_way());
  CHECK(outcomes->take_failed().empty());
}

TEST_CASE_FIXTURE(world,
                  "a change of memory that was rolled back is told whatever size the pool had "
                  "by hand") {
  outcomes->begin();
  changes[1] = {"attention", 5, 5, "rolled back", {}};
  resize_wish x{worker_role::attention, 3, 3};
  x.kv = 1 << 30;
  x.keeps_members = true;
  spawn(resizer, resizer_config{members, {x}, outcomes});
  advance(1s, 100ms);
  CHECK_FALSE(outcomes->under_way());
  CHECK(outcomes->take_failed().size() == 1);
}

TEST_CASE_FIXTURE(world, "a change that is there when it is asked for has not failed") {
  start();
  changes[0] = {"model", 1, 5, "rolled back", "by hand, before"};
  there = true;
  changes[1].state = "done";
  advance(1s, 100ms);
  CHECK(asked == std::vector<std::string>{"model=2"});
  CHECK_FALSE(outcomes->under_way());
  CHECK(outcomes->take_failed().empty());
}

TEST_CASE("cells that are gone lose the members that they got by hand, after all other changes") {
  resize_wish east{worker_role::attention, 0, 0, "east"};
  east.kv = 1 << 30;
  east.keeps_members = true;
  std::vector<resize_wish> wishes{east, {worker_role::attention, 1, 2, "west"}};
  empty_cells(wishes, {"east", "north"});
  REQUIRE(wishes.size() == 3);
  CHECK(wishes[0].cell == "west");
  CHECK(wishes[1].cell == "east");
  CHECK(question_of(wishes[1]).members == 0);
  CHECK(question_of(wishes[1]).kv_bytes == 1 << 30);
  CHECK(wishes[2].cell == "north");
  CHECK(question_of(wishes[2]).members == 0);
}

TEST_CASE_FIXTURE(world, "with MEMBERSHIP the changes of a reload end") {
  start();
  caf::anon_send_exit(members, caf::exit_reason::kill);
  settle();
  CHECK_FALSE(outcomes->under_way());
  CHECK(outcomes->take_failed().size() == 2);
}

TEST_CASE("the pools whose sizes differ are asked for in one order, at what a start would make") {
  config::settings before, after;
  CHECK(resizes_between(before, after).empty());
  before.pools.prefill.placement = after.pools.prefill.placement = config::placement::local;
  before.pools.prefill.members = 2;
  after.pools.prefill.members = 0;
  after.pools.model.members = 4;
  const auto got = resizes_between(before, after);
  REQUIRE(got.size() == 2);
  CHECK(keys_of(got[0]).front() == "pools.model.members");
  CHECK(got[0].members == 4);
  CHECK(keys_of(got[1]).front() == "pools.prefill.members");
  CHECK(got[1].members == 1);
  CHECK(configured_sizes(after) == scheduler::pool_sizes{4, 1, 1});
}

TEST_CASE("L-M03 of a pool with cells a reload changes the sizes of cells") {
  config::settings before;
  before.pools.attention.cells["east"].members = 2;
  before.pools.attention.cells["west"].members = 1;
  auto after = before;
  after.pools.attention.members = 7; // of no cell
  after.pools.attention.cells["west"].members = 0;
  const auto got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(pool_name(got[0]) == "attention/west");
  CHECK(keys_of(got[0]).front() == "pools.attention.cells.west.members");
  CHECK(configured_sizes(before) == scheduler::pool_sizes{1, 3, 0, {2, 1}});
  CHECK(with_wish(configured_sizes(before), got[0], after.pools.attention)
        == scheduler::pool_sizes{1, 2, 0, {2, 0}});
  take_back(after, got[0]);
  CHECK(after.pools.attention.cells.at("west").members == 1);
}

TEST_CASE("L-M03 L-M24 a reload that cuts a cell otherwise asks for it with its size, once") {
  config::settings before;
  before.pools.attention.cells["east"].members = 2;
  before.pools.attention.cells["west"].members = 1;
  auto after = before;
  after.pools.attention.cells["east"].partition = config::partition::requests;
  auto got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(keys_of(got[0]) == std::vector<std::string>{"pools.attention.cells.east.partition"});
  CHECK(question_of(got[0]).pool == "attention/east");
  CHECK(question_of(got[0]).members == members_as_they_are);
  CHECK(question_of(got[0]).partition == "requests");
  CHECK(with_wish(configured_sizes(before), got[0], after.pools.attention)
        == configured_sizes(after));
  CHECK(configured_sizes(after).by_requests == std::vector<uint32_t>{0});
  after.pools.attention.cells["east"].members = 5;
  got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(keys_of(got[0]).size() == 2);
  CHECK(question_of(got[0]).members == 5);
  take_back(after, got[0]);
  CHECK(configured_sizes(after) == configured_sizes(before));
}

TEST_CASE("L-M03 a reload that gives members other memory asks for it with the size, once") {
  config::settings before;
  before.pools.attention.members = 3;
  auto after = before;
  after.pools.attention.kv_bytes = 1 << 30;
  auto got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(keys_of(got[0]) == std::vector<std::string>{"pools.attention.kv_bytes"});
  CHECK(question_of(got[0]).members == members_as_they_are); // also where 3 were scaled by hand
  CHECK(question_of(got[0]).kv_bytes == 1 << 30);
  CHECK(with_wish(configured_sizes(before), got[0], after.pools.attention)
        == configured_sizes(after));
  after.pools.attention.members = 1;
  got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(keys_of(got[0]).size() == 2);
  CHECK(question_of(got[0]).members == 1);
  take_back(after, got[0]);
  CHECK(configured_sizes(after) == configured_sizes(before));
  CHECK_FALSE(after.pools.attention.kv_bytes);
}

TEST_CASE("L-M03 kv.bytes is the memory of all members that have none of their own") {
  config::settings before;
  before.kv.bytes = 1 << 28;
  before.pools.attention.cells["east"].members = 2;
  before.pools.attention.cells["west"].members = 1;
  before.pools.attention.cells["west"].kv_bytes = 1 << 26;
  auto after = before;
  after.kv.bytes = 1 << 29;
  const auto got = resizes_between(before, after);
  REQUIRE(got.size() == 1);
  CHECK(pool_name(got[0]) == "attention/east");
  CHECK(keys_of(got[0]) == std::vector<std::string>{"kv.bytes"});
  CHECK(question_of(got[0]).kv_bytes == 1 << 29);
  CHECK(configured_sizes(after).kv_bytes == std::vector<uint64_t>{1 << 29, 1 << 26});
  take_back(after, got[0]);
  CHECK(after.kv.bytes == 1 << 28);
}

TEST_CASE("L-M03 a reload gives a cell, or prefill workers with KV of their own, other memory") {
  config::settings before;
  before.pools.attention.cells["east"].members = 2;
  before.pools.attention.cells["west"].members = 1;
  before.pools.prefill.placement = config::placement::local;
  REQUIRE(before.pools.prefill_owns_kv());
  auto after = before;
  after.pools.attention.cells["west"].kv_bytes = 1 << 28;
  after.pools.prefill.kv_bytes = 1 << 27;
  const auto got = resizes_between(before, after);
  REQUIRE(got.size() == 2);
  CHECK(keys_of(got[0]) == std::vector<std::string>{"pools.prefill.kv_bytes"});
  CHECK(keys_of(got[1]) == std::vector<std::string>{"pools.attention.cells.west.kv_bytes"});
  auto sizes = configured_sizes(before);
  for (const auto& x : got) sizes = with_wish(sizes, x, after.pools.attention);
  CHECK(sizes == configured_sizes(after));
  CHECK(sizes.kv_bytes == std::vector<uint64_t>{0, 1 << 28});
  for (const auto& x : got) take_back(after, x);
  CHECK(configured_sizes(after) == configured_sizes(before));
}

TEST_CASE("L-M03 cells that lose their last member do so when others have got theirs") {
  config::settings before;
  before.pools.attention.cells["a"].members = 1;
  before.pools.attention.cells["b"].members = 0;
  auto after = before;
  after.pools.attention.cells["a"].members = 0;
  after.pools.attention.cells["b"].members = 3;
  after.pools.model.members = 2;
  const auto got = resizes_between(before, after);
  std::vector<std::string> order;
  for (const auto& x : got) order.push_back(pool_name(x));
  CHECK(order == std::vector<std::string>{"model", "attention/b", "attention/a"});
}

TEST_CASE_FIXTURE(world, "L-M03 a cell keeps its members where the one that takes over gets none") {
  outcomes->begin();
  changes = {{"attention/b", 0, 3, "under way", {}}};
  resize_wish grows{worker_role::attention, 0, 3, "b"}, goes{worker_role::attention, 1, 0, "a"};
  spawn(resizer, resizer_config{members, {grows, {worker_role::model, 1, 2}, goes}, outcomes});
  advance(5s, 100ms);
  changes[0].state = "rolled back";
  advance(1s, 100ms);
  CHECK(asked == std::vector<std::string>{"model=2"});
  changes[0].state = "done";
  advance(1s, 100ms);
  CHECK(asked == std::vector<std::string>{"model=2"}); // and not attention/a=0
  CHECK_FALSE(outcomes->under_way());
  const auto failed = outcomes->take_failed();
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].cell == "b");
  CHECK(failed[1].cell == "a");
}

TEST_CASE("a refusal passes by itself where the moment is wrong, and not where the size is") {
  const auto of = [](const caf::error& e, const std::string& text) {
    return passes_by_itself(e, text);
  };
  const auto refused = caf::make_error(ec::resize_refused);
  CHECK(of(refused, std::string{"not now: "} + other_change + ": model 1 -> 2"));
  CHECK(of(refused, not_started));
  CHECK(of(refused, no_epoch));
  CHECK(of(caf::sec::request_timeout, "no answer came"));
  CHECK_FALSE(of(refused, "a pool cannot be empty: 'model' needs a member"));
  CHECK_FALSE(of(caf::make_error(ec::nobody_there), "there is no pool 'x'"));
}

} // namespace lamella::actors::test
