// Attention cells with workers of their own: who takes which seat, and how they change their sizes.
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "scheduler/cell_tables.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

epoch_design design_of(const scheduler::pool_sizes& x) {
  epoch_design design;
  design.shape.replicas = x.model;
  design.shape.shards = x.attention;
  design.shape.prefill_seats = x.prefill;
  design.shape.cells = x.cells;
  design.shape.cell_seats = {"", "far", "far"};
  design.shape.by_requests = x.by_requests;
  for (const auto members : scheduler::members_of_tables(x.cells, x.by_requests))
    design.pool.layout.cells.push_back({members, 100});
  return design;
}

/// Cell `near` with a worker of the pool, `far` and `away` with a worker and a spare of their own.
struct cells_world : membership_world {
  cells_world()
      : membership_world{[](membership_config& m) {
          m.seats = {};
          m.seats.add(worker_role::model, 1);
          m.seats.add(worker_role::attention, 1);
          m.seats.add({worker_role::attention, "far"}, 2);
          m.seats.add(worker_role::prefill, 1);
          m.cells = {"near", "far", "away"};
          m.design_of = design_of;
          auto design = design_of({1, 2, 1, {1, 1, 0}});
          m.shape = design.shape;
          m.pool.layout = design.pool.layout;
        }} {
    want_epoch();
  }

  process join_cell(const std::string& of) {
    cell = of;
    auto result = join("attention");
    cell.clear();
    return result;
  }
  std::string resize(const std::string& pool, uint32_t size, const std::string& partition = {}) {
    const auto answer = ask<pool_change>(members, pool_resize{pool, size, partition});
    settle();
    REQUIRE(answer->came);
    return answer->error ? system.render(answer->error) : answer->value.state;
  }
  /// Seats of the shards, by number.
  std::vector<std::string> shards() {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    std::map<std::string, std::string> seats;
    for (const auto& x : status->value.workers)
      if (x.part.starts_with("shard")) seats[x.part] = x.seat;
    std::vector<std::string> result;
    for (const auto& [part, seat] : seats) result.push_back(seat);
    return result;
  }
};

} // namespace

TEST_CASE_FIXTURE(cells_world,
                  "L-M03 a worker takes seats of the cell that it names, and no others") {
  join("model");
  join("prefill");
  const auto far = join_cell("far");
  CHECK(far.grant->index == 1);
  CHECK(*join("attention").result == "in");
  CHECK(join("attention").result->find("'attention' is full: 1 of 1") != std::string::npos);
  const auto spare = join_cell("away"); // has the same workers as far
  CHECK(spare.grant->index == 2);
  CHECK(join_cell("far").result->find("'attention/far' is full: 2 of 2") != std::string::npos);
  CHECK(join_cell("else").result->find("has no cell 'else'") != std::string::npos);
  REQUIRE(opened.size() == 1);
  CHECK(shards() == std::vector<std::string>{"attention/0", "attention/1"});
  // The spare is of that cell: it takes its part after a loss.
  end(far.worker);
  want_epoch();
  REQUIRE(opened.size() == 2);
  CHECK(shards() == std::vector<std::string>{"attention/0", "attention/2"});
}

TEST_CASE_FIXTURE(cells_world,
                  "L-M03 L-M23 a cell that grows gets seats of its group, and gives them back") {
  join("model");
  join("prefill");
  join("attention");
  join_cell("far");
  join_cell("far");
  CHECK(resize("attention/away", 2) == "under way");
  CHECK(missing.back() == "attention/3, attention/4");
  CHECK(join("attention").result->find("is full") != std::string::npos);
  CHECK(join_cell("away").grant->index == 3);
  want_next();
  settled();
  CHECK(shards()
        == std::vector<std::string>{"attention/0", "attention/1", "attention/2", "attention/3"});
  CHECK(resize("attention/away", 0) == "under way");
  want_next();
  settled();
  CHECK(shards() == std::vector<std::string>{"attention/0", "attention/1"});
  CHECK(missing.back().empty()); // two seats are left to the group, one for the spare
  CHECK(resize("attention/near", 2) == "under way");
  CHECK(join("attention").grant->index == 3); // the lowest index that is free
}

TEST_CASE_FIXTURE(cells_world,
                  "L-M24 a cell is cut otherwise by a planned epoch, and keeps its seats") {
  const auto cell_of = [&](const std::string& which) {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    const auto& all = status->value.changes;
    const auto found =
        std::ranges::find(all, "attention/" + which, [](const auto& x) { return x.pool; });
    REQUIRE(found != all.end());
    return found->partition;
  };
  join("model");
  join("prefill");
  join("attention");
  join_cell("far");
  join_cell("far");
  CHECK(cell_of("far") == "heads");
  CHECK(resize("attention/far", 1, "requests") == "under way");
  CHECK(cell_of("far") == "heads"); // until the next epoch serves
  want_next();
  settled();
  CHECK(cell_of("far") == "requests");
  CHECK(cell_of("near") == "heads");
  CHECK(shards() == std::vector<std::string>{"attention/0", "attention/1"});
  // The same again is done already; with another size it takes seats as any change.
  CHECK(resize("attention/far", 1, "requests") == "done");
  CHECK(resize("attention/far", 2) == "under way");
  CHECK(join_cell("far").grant->index == 3);
  want_next();
  settled();
  CHECK(shards().size() == 3);
  CHECK(cell_of("far") == "requests");
  CHECK(resize("attention/far", 2, "heads") == "under way");
  want_next();
  settled();
  CHECK(cell_of("far") == "heads");
}

TEST_CASE_FIXTURE(cells_world,
                  "L-M24 only cells are cut otherwise, and only by heads or requests") {
  join("model");
  join("prefill");
  join("attention");
  join_cell("far");
  CHECK(resize("model", 1, "requests").find("'model' is no cell") != std::string::npos);
  CHECK(resize("attention/far", 1, "rows").find("use heads or requests") != std::string::npos);
}

TEST_CASE("L-M03 where each cell has workers of its own, one must be named") {
  membership_world w{[](membership_config& m) {
    m.seats = {};
    m.seats.add(worker_role::model, 1);
    m.seats.add({worker_role::attention, "east"}, 1);
    m.seats.add({worker_role::attention, "west"}, 1);
    m.cells = {"east", "west"};
    m.shape.cells = {1, 1};
    m.shape.cell_seats = {"east", "west"};
  }};
  CHECK(w.join("attention").result->find("--cell: east, west") != std::string::npos);
  w.cell = "west";
  CHECK(w.join("attention").grant->index == 1);
  CHECK(w.join("model").result->find("has no cell 'west'") != std::string::npos);
}

} // namespace lamella::actors::test
