// Times of the service from the counters of its workers.
#include "actors/membership/measured_times.hpp"

#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"

#include <doctest/doctest.h>

namespace lamella::actors {

namespace {

using scheduler::seat;
using scheduler::timed_work;
using scheduler::worker_role;

constexpr uint64_t ms = 1'000'000;

/// A worker that has run `iterations` of `units` units each in `busy_ms` each, `looks` times.
worker_peers after(uint64_t looks, uint64_t iterations, uint64_t units, uint64_t busy_ms) {
  worker_peers x;
  const auto all = looks * iterations;
  x.tokens = {all, all * units, all * busy_ms * ms};
  return x;
}

} // namespace

TEST_CASE("S-M23 what workers count between two looks becomes times and a load") {
  measured_times x;
  const seat replica{worker_role::model, 0}, one{worker_role::attention, 0},
      two{worker_role::attention, 1};
  CHECK(x.rows().empty());
  for (uint64_t look = 1; look <= 3; ++look) {
    x.note(replica, 1, after(look, 10, 8, 20), "");
    x.note(one, 1, after(look, 10, 4000, 5), "");
    x.note(two, 1, after(look, 10, 4000, 7), "");
    x.end_look(1, 1);
  }
  CHECK(*x.times().predict(timed_work::launch, "", 8) == doctest::Approx(0.020));
  CHECK(*x.times().attention_s(4000) == doctest::Approx(0.007)); // the median of both members'
  CHECK(x.times().load()->rows == doctest::Approx(8));
  CHECK(x.times().load()->positions == doctest::Approx(4000)); // by head: each member has all
  CHECK(x.rows().size() == 2);
  CHECK(x.rows()[0].work == "launch");
  CHECK(x.rows()[0].units == 8);
  // Another worker counts from zero; an answer that was long on its way is no work.
  x.note(replica, 2, after(1, 10, 8, 20), "");
  x.note(replica, 2, after(0, 10, 8, 20), "");
  x.end_look(1, 1);
  CHECK(*x.times().predict(timed_work::launch, "", 8) == doctest::Approx(0.020));
}

TEST_CASE("a launch counts once where several replicas run its slices in turn") {
  measured_times x;
  // Three batches of 4 rows, ten launches each; both replicas tell of all thirty.
  for (uint32_t i = 0; i < 2; ++i) x.note({worker_role::model, i}, 1, after(1, 30, 4, 20), "");
  x.note({worker_role::attention, 0}, 1, after(1, 30, 1000, 5), "");
  x.end_look(3, 2);
  CHECK(x.times().load()->rows == doctest::Approx(12));
  CHECK(x.times().load()->positions == doctest::Approx(3000));
}

TEST_CASE("prompts, cells and round trips are kept apart") {
  measured_times x;
  worker_peers shard;
  shard.prompts = {2, 2000, 8 * ms};
  shard.peers = {{"model/0", "tcp", 0, 1}, {"model/1", "tcp", 80, 1}, {"model/2", "tcp", 50, 1}};
  x.note({worker_role::attention, 0}, 1, shard, "far");
  x.end_look(1, 1);
  CHECK_FALSE(x.times().attention_s(1000));
  CHECK(*x.times().predict(timed_work::prompt_attention, "far", 1000) == doctest::Approx(0.004));
  CHECK(x.times().round_trip() == doctest::Approx(50e-6));
  CHECK_FALSE(x.times().load()); // nothing decodes
}

} // namespace lamella::actors
