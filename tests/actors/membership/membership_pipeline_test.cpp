// MEMBERSHIP on virtual time: `batching.pipeline: auto`.
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "scheduler/times/pipeline_choice.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

/// Two replicas and a shard, whose pipeline is chosen.
struct choosing_world : membership_world {
  std::vector<process> models;
  process shard;

  explicit choosing_world(pipeline_choosing chooses)
      : membership_world{[&](membership_config& m) {
          m.seats = {};
          m.seats.add(worker_role::model, 2);
          m.seats.add(worker_role::attention, 1);
          m.shape.replicas = 2;
          m.shape.shards = 1;
          m.shape.prefill_seats = 0;
          m.shape.one_each = true;
          m.pool.layout.cells = {{1, 100}};
          m.chooses = chooses;
          m.poll_interval = 1s;
        }} {
    want_epoch();
    for (uint32_t i = 0; i < 2; ++i) {
      pid = 40 + i;
      models.push_back(join("model"));
    }
    pid = 50;
    shard = join("attention");
    REQUIRE(opened.size() == 1);
  }

  /// For so many seconds `rows` sequences decode, in batches as they are now, at a model that reads
  /// its weights in 20 ms and takes 0.1 ms for a row; the shard takes a microsecond for each of 100
  /// positions of a row.
  void decode(int seconds, uint64_t rows) {
    for (int s = 0; s < seconds; ++s) {
      const auto batches = scheduler::batches_of(opened.back().streams);
      const auto each = rows / batches;
      const bool rotates = batches > 2;
      for (auto& x : models)
        add(x.book->tokens, rotates ? 10 * batches : 10, each, 20'000'000 + 100'000 * each);
      add(shard.book->tokens, 10 * batches, each * 100, 100'000 * each);
      advance(1s, 100ms);
    }
  }

  static void add(work_done& to, uint64_t iterations, uint64_t units, uint64_t ns) {
    to.iterations += iterations;
    to.units += iterations * units;
    to.busy_ns += iterations * ns;
  }

  pipeline_info pipeline() {
    const auto x = ask<system_status>(members, status_atom_v);
    settle();
    return x->value.pipeline;
  }
};

} // namespace

TEST_CASE("V-M17 at the start a pipeline is chosen by the size of batches") {
  choosing_world small{{128, 3}}, large{{129, 3}},
      shared{{129, 3, [](const auto&) { return std::string{"one device"}; }}};
  CHECK(scheduler::batches_of(small.opened[0].streams) == 2);
  CHECK(scheduler::batches_of(large.opened[0].streams) == 3);
  CHECK(scheduler::places_of(large.opened[0].streams, scheduler::stream_id{2}).size() == 2);
  CHECK(scheduler::batches_of(shared.opened[0].streams) == 2);
  pool_sizes asked;
  const choosing_world sized{{129, 3, [&](const pool_sizes& x) {
                                asked = x;
                                return std::string{};
                              }}};
  CHECK(scheduler::size_of(asked, worker_role::model) == 2);
  CHECK(large.pipeline().rotates);
  CHECK(large.pipeline().batches == 3);
  CHECK_FALSE(shared.pipeline().rotates);
}

TEST_CASE("V-M17 L-M17 the pipeline follows the rule with measured times, after a while") {
  choosing_world w{{128, 3}};
  REQUIRE(scheduler::batches_of(w.opened[0].streams) == 2);
  w.decode(100, 6); // the weights would be read three times instead of two
  CHECK(w.due.empty());
  // 600 sequences: 50 ms at a replica, 30 ms at the shard, for each of two batches.
  w.decode(25, 600);
  CHECK(w.due.empty());
  w.decode(20, 600);
  REQUIRE(w.due.size() == 1);
  CHECK(says(w.due[0].second, "another pipeline is faster"));
  w.want_next();
  REQUIRE(w.opened.size() == 2);
  CHECK(scheduler::batches_of(w.opened[1].streams) == 3);
  CHECK(w.opened[1].beside == w.opened[0].epoch);
  w.settled();
  CHECK(w.pipeline().rotates);
  // What the pure rule says of the same times.
  const auto times = [](double rows, double positions) {
    scheduler::iteration_times t;
    t.model = 0.020 + 1e-4 * rows;
    t.attention = 1e-6 * positions;
    return t;
  };
  const auto rates = scheduler::rates_of(2, 3, 600, 60'000, times);
  CHECK(rates.rotating > rates.each * scheduler::pipeline_hysteresis);
  w.decode(100, 600); // it stays
  CHECK(w.due.size() == 1);
  w.decode(29, 3);
  CHECK(w.due.size() == 1);
  w.decode(30, 3);
  CHECK(w.due.size() == 2);
  w.want_next();
  REQUIRE(w.opened.size() == 3);
  CHECK(scheduler::batches_of(w.opened[2].streams) == 2);
}

TEST_CASE("V-M17 L-M25 a replica that is lost leaves a pipeline chosen for those that are left") {
  choosing_world w{{129, 3}};
  REQUIRE(scheduler::batches_of(w.opened[0].streams) == 3);
  w.end(w.models[1].worker);
  REQUIRE(w.lost.size() == 1);
  w.want_epoch();
  REQUIRE(w.opened.size() == 2);
  CHECK(scheduler::batches_of(w.opened[1].streams) == 2);
  CHECK(w.pipeline().batches == 2);
  w.join("model");
  CHECK(w.due.size() == 1);
  w.want_next();
  REQUIRE(w.opened.size() == 3);
  CHECK(scheduler::batches_of(w.opened[2].streams) == 3);
}

} // namespace lamella::actors::test
