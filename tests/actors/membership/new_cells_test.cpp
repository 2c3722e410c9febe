// Attention cells that come while a service runs, as MEMBERSHIP takes and refuses them.
#include "actors/membership/cell_roster.hpp"
#include "actors/membership/pool_parts.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "scheduler/cell_tables.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

struct cell_seats_book {
  std::vector<std::string> seats{"", ""}; ///< of the cells, as the service has them
};

/// A pool of the cells `near`, with a worker, and `far`, without; more may come.
struct new_cells_world : cell_seats_book, membership_world {
  new_cells_world()
      : membership_world{[this](membership_config& m) {
          m.seats = {};
          m.seats.add(worker_role::model, 1);
          m.seats.add(worker_role::attention, 1);
          m.cells = {"near", "far"};
          m.design_of = [this](const scheduler::pool_sizes& x) { return design_of(x); };
          auto design = design_of({1, 1, 0, {1, 0}});
          m.shape = design.shape;
          m.pool.layout = design.pool.layout;
        }} {
    want_epoch();
  }

  epoch_design design_of(const scheduler::pool_sizes& x) const {
    epoch_design design;
    design.shape.replicas = x.model;
    design.shape.shards = x.attention;
    design.shape.prefill_seats = x.prefill;
    design.shape.cells = x.cells;
    design.shape.cell_seats = {seats.begin(),
                               seats.begin() + static_cast<ptrdiff_t>(x.cells.size())};
    design.shape.by_requests = x.by_requests;
    design.shape.kv_bytes = x.kv_bytes;
    for (const auto size : scheduler::members_of_tables(x.cells, x.by_requests))
      design.pool.layout.cells.push_back({size, 100});
    return design;
  }

  /// `near`, `far` and a third cell with workers of its own, cut by requests.
  cell_roster three() {
    cell_roster x;
    x.names = {"near", "far", "own"};
    x.seats = {"", "", "own"};
    x.taken = {2};
    x.configured.cells = {1, 0, 2};
    x.configured.by_requests = {2};
    x.configured.kv_bytes = {0, 0, 77};
    x.extra_seats = {{{worker_role::attention, ""}, 0}, {{worker_role::attention, "own"}, 1}};
    x.take = [this] {
      if (gone) return false;
      ++taken;
      seats = {"", "", "own"};
      return true;
    };
    return x;
  }

  /// The reason of a refusal, or nothing.
  std::string tell(const cell_roster& x) {
    const auto answer = ask<bool>(members, cells_ptr{std::make_shared<const cell_roster>(x)});
    settle();
    REQUIRE(answer->came);
    return answer->error ? system.render(answer->error) : "";
  }
  std::string resize(const std::string& pool, uint32_t size) {
    const auto answer = ask<pool_change>(members, pool_resize{pool, size});
    settle();
    REQUIRE(answer->came);
    return answer->error ? system.render(answer->error) : answer->value.state;
  }
  pool_change change_of(const std::string& pool) {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    for (const auto& x : status->value.changes)
      if (x.pool == pool) return x;
    return {};
  }
  void serve() {
    join("model");
    join("attention");
    REQUIRE(opened.size() == 1);
  }

  int taken = 0;
  bool gone = false; ///< who asked
};

} // namespace

TEST_CASE_FIXTURE(new_cells_world,
                  "L-M03 a new cell is there without members, and then gets some") {
  serve();
  CHECK(resize("attention/own", 1).find("there is no pool 'attention/own'") != std::string::npos);
  CHECK(tell(three()) == "");
  CHECK(taken == 1);
  CHECK(due.empty()); // nothing changes by that
  const auto there = change_of("attention/own");
  CHECK(there.to == 0);
  CHECK(there.state == "none");
  CHECK(there.partition == "requests");
  CHECK(there.kv_bytes == 77);
  CHECK(resize("attention/own", 2) == "under way");
  CHECK(change_of("attention").state == "under way"); // no worker was lost
  CHECK(change_of("attention").to == 3);
  CHECK(missing.back() == "attention/1, attention/2, attention/3"); // and a spare of its own
  for (const auto index : {1, 2, 3}) {
    cell = "own";
    CHECK(join("attention").grant->index == index);
  }
  want_next();
  REQUIRE(opened.size() == 2);
  const auto& layout = opened.back().layout;
  CHECK(layout.members() == 3);
  CHECK(layout.in_use(0));
  CHECK(layout.in_use(2 + scheduler::cells_max));
  CHECK(layout.in_use(2 + 2 * scheduler::cells_max));
  settled();
  CHECK(change_of("attention/own").state == "done");
  CHECK(change_of("attention/own").to == 2);
  CHECK(change_of("attention").to == 3);
  CHECK(change_of("attention").state == "none");
}

TEST_CASE_FIXTURE(new_cells_world, "L-M03 cells with members keep their settings and their seats") {
  serve();
  auto x = three();
  x.taken = {0, 2};
  CHECK(tell(x).find("the cell 'near' has members") != std::string::npos);
  x = three();
  x.seats = {"near", "", "own"};
  CHECK(tell(x).find("the workers of the cell 'near' sit on the seats of ''") != std::string::npos);
  x = three();
  x.names = {"near", "own", "far"};
  CHECK(tell(x).find("other cells") != std::string::npos);
  CHECK(taken == 0);
  CHECK(change_of("attention/own").pool.empty());
  // One without members gets others.
  x = three();
  x.taken = {1, 2};
  x.configured.by_requests = {1, 2};
  CHECK(tell(x) == "");
  CHECK(change_of("attention/far").partition == "requests");
  // As soon as it is to have some it keeps them.
  CHECK(resize("attention/far", 1) == "under way");
  CHECK(tell(x).find("another change is under way") != std::string::npos);
  join("attention");
  want_next();
  settled();
  CHECK(change_of("attention/far").to == 1);
  CHECK(tell(x).find("the cell 'far' has members") != std::string::npos);
}

TEST_CASE_FIXTURE(new_cells_world, "L-M03 cells that nobody waits for any more do not come") {
  serve();
  gone = true;
  CHECK(tell(three()).find("nobody waits") != std::string::npos);
  CHECK(change_of("attention/own").pool.empty());
}

TEST_CASE_FIXTURE(new_cells_world, "L-M03 before a service has started no cells come") {
  CHECK(tell(three()).find("not started yet") != std::string::npos);
  CHECK(taken == 0);
}

TEST_CASE("a pool of cells has the KV that each of its cells has, or tells none of its own") {
  scheduler::pool_sizes x{1, 2, 0, {1, 1}};
  x.kv_bytes = {5, 7};
  CHECK(kv_bytes_of(x, {worker_role::attention}) == 0);
  CHECK(kv_bytes_of(x, {worker_role::attention, 1}) == 7);
  x.kv_bytes = {5, 5};
  CHECK(kv_bytes_of(x, {worker_role::attention}) == 5);
}

} // namespace lamella::actors::test
