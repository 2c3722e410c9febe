#include "scheduler/planner/cost/staggered.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;

namespace {

std::vector<iteration_times> equal(uint32_t n, iteration_times t) {
  return std::vector<iteration_times>(n, t);
}

} // namespace

TEST_CASE("L-M17 L-M19 L-M20 V-M05 with t_a = t_m / (n - 1) the rotation has no bubbles") {
  for (const uint32_t n : {2u, 3u, 5u}) {
    CAPTURE(n);
    iteration_times t;
    t.model = 0.040;
    t.attention = t.model / (n - 1);
    const auto all = equal(n, t);
    const auto played = play_staggered(all, n - 1, pipeline_kind::rotational, 80, 50);
    CHECK(played.replica_busy > 0.98);
    CHECK(played.attention_busy > 0.98);
    CHECK(played.iteration_s == doctest::Approx(t.model + t.attention).epsilon(0.02));
  }
}

TEST_CASE("L-M06 batches that share NICs are never faster than these") {
  for (const uint32_t n : {2u, 3u, 4u}) {
    CAPTURE(n);
    iteration_times t;
    t.model = 0.010;
    t.attention = 0.004;
    t.network = 0.020;
    t.memory_nics = 0.018;
    const auto all = equal(n, t);
    const auto closed = iteration_s(all, 0, n - 1, pipeline_kind::rotational);
    CHECK(closed == doctest::Approx(std::max(0.034, n * 0.018)));
    const auto played = play_staggered(all, n - 1, pipeline_kind::rotational, 80, 50);
    CHECK(played.iteration_s == doctest::Approx(closed).epsilon(0.03));
  }
}

TEST_CASE("the closed form agrees with the layer-by-layer run for equal batches, within 3 %") {
  struct point {
    uint32_t n, replicas;
    double model, attention, network, host;
    pipeline_kind kind;
  };
  const auto rot = pipeline_kind::rotational, fix = pipeline_kind::fixed;
  for (const auto& p : {point{2, 1, 0.024, 0.013, 0.004, 0, rot},
                        {2, 1, 0.013, 0.024, 0.004, 0, rot},
                        {2, 1, 0.010, 0.010, 0.040, 0, rot},
                        {3, 2, 0.030, 0.005, 0.003, 0, rot},
                        {3, 2, 0.010, 0.030, 0.003, 0, rot},
                        {1, 1, 0.02, 0.02, 0.005, 0.005, fix},
                        {4, 2, 0.030, 0.008, 0.003, 0, fix},
                        {7, 6, 0.030, 0.004, 0.002, 0, rot},
                        {2, 1, 0.024, 0.013, 0.004, 0.003, rot}}) {
    iteration_times t;
    t.model = p.model;
    t.attention = p.attention;
    t.network = p.network;
    t.host = p.host;
    const auto all = equal(p.n, t);
    CAPTURE(p.n);
    CAPTURE(p.model);
    const auto played = play_staggered(all, p.replicas, p.kind, 80, 40);
    CHECK(iteration_s(all, 0, p.replicas, p.kind)
          == doctest::Approx(played.iteration_s).epsilon(0.03));
  }
}

TEST_CASE("V-M06 a fixed pipeline is never faster, and equal when attention takes no time") {
  for (const double attention : {0.0, 0.004, 0.010, 0.020}) {
    CAPTURE(attention);
    iteration_times t;
    t.model = 0.020;
    t.attention = attention;
    const auto all = equal(4, t);
    const auto fixed = play_staggered(all, 3, pipeline_kind::fixed, 40, 30).iteration_s;
    const auto rotating = play_staggered(all, 3, pipeline_kind::rotational, 40, 30).iteration_s;
    CHECK(fixed >= rotating * 0.999);
    // Four batches on three replicas: one replica has two of them, whatever attention takes.
    CHECK(fixed >= 2 * t.model * 0.999);
  }
}

TEST_CASE("L-M22 more batches shorten the iteration when attention is what it waits for") {
  double last = 1e9;
  for (const uint32_t n : {2u, 3u, 4u, 5u}) {
    iteration_times t;
    t.model = 0.030;                 // one replica per batch more, each batch as large
    t.attention = t.model / (n - 1); // memory devices are added to match (L-M19)
    const auto all = equal(n, t);
    const auto s = iteration_s(all, 0, n - 1, pipeline_kind::rotational);
    CHECK(s < last);
    last = s;
  }
}
