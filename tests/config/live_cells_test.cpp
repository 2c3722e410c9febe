// Attention cells that come, go and change while a service runs, as a reload takes them.
#include "config/cells.hpp"
#include "config/reload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace lamella::config::test {

namespace {

/// Two cells of worker processes on this machine; `b` has no members.
settings two_cells() {
  settings x;
  x.pools.model.placement = x.pools.attention.placement = placement::local;
  for (const auto* name : {"a", "b"}) {
    attention_pool_settings cell = x.pools.attention;
    cell.least = 0;
    x.pools.attention.cells[name] = cell;
  }
  x.pools.attention.cells.at("a").members = 2;
  x.pools.attention.cells.at("b").members = 0;
  return x;
}

bool waits(const live_change& got, const std::string& key) {
  const auto found = std::ranges::find(got.changes, key, &difference::key);
  REQUIRE(found != got.changes.end());
  return found->needs_restart;
}

std::vector<std::string> cells_of(const settings& x) {
  std::vector<std::string> names;
  for (const auto& [name, cell] : x.pools.attention.cells) names.push_back(name);
  return names;
}

} // namespace

TEST_CASE("L-M03 a reload takes new cells, and the others keep their numbers") {
  const auto before = two_cells();
  auto wanted = before;
  auto cell = before.pools.attention.cells.at("a");
  cell.threads = 3;
  cell.partition = partition::requests;
  wanted.pools.attention.cells["aa"] = cell;
  const auto got = take_live(before, wanted);
  CHECK(cells_of(wanted) == std::vector<std::string>{"a", "aa", "b"});
  CHECK(cells_of(got.value) == std::vector<std::string>{"a", "b", "aa"});
  CHECK(got.cells == std::vector<std::string>{"aa"});
  CHECK(got.value.pools.attention.cells.at("aa").threads == 3u);
  CHECK(got.value.pools.attention.cells.at("aa").members == 2);
  CHECK(got.violations.empty());
  std::vector<std::string> keys;
  for (const auto& x : got.changes) {
    CHECK_FALSE(x.needs_restart);
    keys.push_back(x.key.substr(x.key.rfind('.') + 1));
  }
  CHECK(keys == std::vector<std::string>{"members", "threads", "partition"});
  // Once more, it is known.
  const auto again = take_live(got.value, wanted);
  CHECK(again.cells.empty());
  CHECK(again.changes.empty());
}

TEST_CASE(
    "L-M03 a cell without members takes all of its settings, one with members the live ones") {
  const auto before = two_cells();
  auto wanted = before;
  for (auto& [name, cell] : wanted.pools.attention.cells) cell.threads = 3, cell.kv_bytes = 1 << 30;
  const auto got = take_live(before, wanted);
  const auto& cells = got.value.pools.attention.cells;
  CHECK(got.cells == std::vector<std::string>{"b"});
  CHECK(cells.at("b").threads == 3u);
  CHECK_FALSE(cells.at("a").threads.has_value());
  CHECK(cells.at("a").kv_bytes == 1 << 30);
  CHECK(waits(got, "pools.attention.cells.a.threads"));
  CHECK_FALSE(waits(got, "pools.attention.cells.a.kv_bytes"));
  CHECK_FALSE(waits(got, "pools.attention.cells.b.threads"));
}

TEST_CASE("L-M03 a cell that is wanted no more loses its members and keeps its number") {
  const auto before = two_cells();
  auto wanted = before;
  wanted.pools.attention.cells.at("b").members = 1;
  wanted.pools.attention.cells.erase("a");
  const auto got = take_live(before, wanted);
  CHECK(cells_of(got.value) == std::vector<std::string>{"a", "b"});
  CHECK(got.value.pools.attention.cells.at("a").members == 0);
  CHECK(got.violations.empty());
  REQUIRE(got.changes.size() == 2);
  CHECK(got.changes[0].key == "pools.attention.cells.a.members");
  CHECK(got.changes[0].before == "2");
  CHECK(got.changes[0].after == "0");
  CHECK_FALSE(got.changes[0].needs_restart);
  // From then on nothing differs; it is still told, since it may get members by hand.
  CHECK(take_live(got.value, wanted).changes.empty());
  CHECK(take_live(got.value, wanted).gone == std::vector<std::string>{"a"});
}

TEST_CASE("L-M03 cells for which the running service has no place wait for a restart") {
  auto before = two_cells();
  const auto waits_with = [&](auto change) {
    auto wanted = before;
    attention_pool_settings cell = wanted.pools.attention;
    change(cell);
    wanted.pools.attention.cells["new"] = cell;
    const auto got = take_live(before, wanted);
    CHECK(got.cells.empty() == !got.value.pools.attention.cells.contains("new"));
    return waits(got, "pools.attention.cells.new.members");
  };
  CHECK_FALSE(waits_with([](auto&) {}));
  CHECK_FALSE(waits_with([](auto& x) { x.placement = placement::remote; }));
  // Prompts run on the replicas: no seat is of the service's own process.
  REQUIRE(before.pools.prefill.placement == placement::in_process);
  CHECK(waits_with([](auto& x) { x.placement = placement::in_process; }));
  CHECK(waits_with([](auto& x) { x.parity = true; }));
  before.pools.attention.cells.at("a").parity = true;
  CHECK_FALSE(waits_with([](auto& x) { x.parity = true; }));
  // All in one process: nobody could join.
  for (auto& [name, cell] : before.pools.attention.cells) cell.placement = placement::in_process;
  before.pools.model.placement = before.pools.prefill.placement = placement::in_process;
  CHECK(waits_with([](auto& x) { x.placement = placement::remote; }));
  CHECK(waits_with([](auto& x) { x.placement = placement::local; }));
  // A pool by heads becomes cells where all can come; one by requests has other tables.
  before.pools.attention.placement = placement::in_process;
  before.pools.attention.cells.clear();
  CHECK_FALSE(waits_with([](auto&) {}));
  CHECK(waits_with([](auto& x) { x.placement = placement::local; }));
  before.pools.attention.partition = partition::requests;
  CHECK(waits_with([](auto&) {}));
}

TEST_CASE("L-M03 a pool by heads is the first cell where others come, and loses its members") {
  settings before;
  before.pools.attention.members = 3;
  auto wanted = before;
  wanted.pools.attention.members = 1; // of the cells only, where there are any
  attention_pool_settings cell = wanted.pools.attention;
  cell.least = 0;
  wanted.pools.attention.cells["far"] = cell;
  auto got = take_live(before, wanted);
  CHECK(cells_of(got.value) == std::vector<std::string>{"main", "far"});
  CHECK(got.value.pools.attention.cells.at("main").members == 0);
  CHECK(got.cells == std::vector<std::string>{"far"});
  CHECK(got.violations.empty());
  CHECK_FALSE(waits(got, "pools.attention.cells.far.members"));
  // By its name it stays.
  cell.members = 3;
  wanted.pools.attention.cells["main"] = cell;
  got = take_live(before, wanted);
  CHECK(got.value.pools.attention.cells.at("main").members == 3);
  CHECK(got.cells == std::vector<std::string>{"far"});
  CHECK(got.violations.empty());
  // Back to one pool: not while it runs.
  const auto back = take_live(got.value, before);
  CHECK(cells_of(back.value) == std::vector<std::string>{"main", "far"});
  CHECK(back.value.pools.attention.cells.at("far").members == 1);
  CHECK(waits(back, "pools.attention.cells.far.members"));
}

TEST_CASE("L-M03 a pool does not lose its last parity, nor get its first, while it serves") {
  auto before = two_cells();
  before.pools.attention.cells.at("b").parity = true;
  auto wanted = before;
  wanted.pools.attention.cells.at("b").parity = false;
  wanted.pools.attention.cells.at("b").threads = 3;
  auto got = take_live(before, wanted);
  CHECK(got.cells.empty());
  CHECK(got.value.pools.attention.cells.at("b").parity);
  CHECK(waits(got, "pools.attention.cells.b.parity"));
  CHECK(waits(got, "pools.attention.cells.b.threads"));
  before.pools.attention.cells.at("a").parity = true;
  wanted.pools.attention.cells.at("a").parity = true;
  got = take_live(before, wanted);
  CHECK(got.cells == std::vector<std::string>{"b"});
  CHECK_FALSE(waits(got, "pools.attention.cells.b.parity"));
}

TEST_CASE("L-M03 a pool that does not become cells keeps its size and its memory") {
  settings before;
  before.pools.attention.partition = partition::requests;
  before.pools.attention.members = 4;
  auto wanted = before;
  wanted.pools.attention.members = 1;
  wanted.pools.attention.kv_bytes = 1 << 30;
  wanted.pools.attention.cells["a"] = before.pools.attention;
  const auto got = take_live(before, wanted);
  CHECK(got.value.pools.attention.members == 4);
  CHECK_FALSE(got.value.pools.attention.kv_bytes.has_value());
  for (const auto& x : got.changes) CHECK(x.needs_restart);
  // A cell of the name that the whole pool would have, and no other: nothing comes.
  wanted = before;
  wanted.pools.attention.partition = before.pools.attention.partition = partition::heads;
  wanted.pools.attention.cells["main"] = before.pools.attention;
  CHECK(take_live(before, wanted).value.pools.attention.cells.empty());
  // Nor does a pool with cells become one without.
  const auto cells = two_cells();
  const auto back = take_live(cells, before);
  CHECK(cells_of(back.value) == std::vector<std::string>{"a", "b"});
  CHECK(back.value.pools.attention.members == cells.pools.attention.members);
  CHECK(waits(back, "pools.attention.members"));
}

TEST_CASE("L-M03 no more cells come than slot tables are numbered for") {
  auto before = two_cells();
  auto wanted = before;
  for (size_t i = 2; i < cells_most; ++i)
    wanted.pools.attention.cells["n" + std::to_string(i)] = before.pools.attention.cells.at("b");
  CHECK(take_live(before, wanted).violations.empty());
  wanted.pools.attention.cells["more"] = before.pools.attention.cells.at("b");
  const auto got = take_live(before, wanted);
  REQUIRE(got.violations.size() == 1);
  CHECK(got.violations[0].message.find("33 cells, more than the 32") != std::string::npos);
}

} // namespace lamella::config::test
