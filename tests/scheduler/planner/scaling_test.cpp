// Devices that come and go in a simulated run.
#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}
cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

decode_design disaggregated(uint32_t b) {
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(b, "H20");
  return d;
}

decode_design homogeneous() {
  decode_design d;
  d.compute = of(4, "H100-SXM");
  d.block_slots = d.window_slots = 16;
  return d;
}

simulation_options scaled(std::vector<scaling_event> events) {
  simulation_options o;
  o.scalings = std::move(events);
  return o;
}

} // namespace

TEST_CASE("L-M03 more memory devices hold more requests from then on, fewer hold fewer") {
  const auto cost = cost_of("LLaMA-65B");
  const auto trace = uniform_trace(900, 1000, 200, 7);
  const auto two = simulate(disaggregated(2), cost, trace),
             more = simulate(disaggregated(2), cost, trace, scaled({{5, true, 2}})),
             four = simulate(disaggregated(4), cost, trace),
             fewer = simulate(disaggregated(4), cost, trace, scaled({{5, true, -2}}));
  for (const auto* r : {&two, &more, &four, &fewer}) {
    CHECK(r->requests == 900);
    CHECK(r->tokens == two.tokens);
    CHECK(r->running_over_time == doctest::Approx(r->rate_times_stay).epsilon(0.01));
  }
  CHECK(more.seconds < 0.8 * two.seconds);
  CHECK(more.seconds > four.seconds);
  CHECK(fewer.seconds > 1.2 * four.seconds);
  CHECK(fewer.preemptions > 0); // those that found no room any more
  // Dollars are those of the devices that were there.
  const auto price = [](uint32_t b) { return disaggregated(b).usd_per_hour(); };
  CHECK(two.mean_usd_per_hour == doctest::Approx(price(2)));
  CHECK(more.mean_usd_per_hour
        == doctest::Approx((5 * price(2) + (more.seconds - 5) * price(4)) / more.seconds)
               .epsilon(0.02));
}

TEST_CASE("L-M24 a number of memory devices that the KV heads cannot be divided over is refused") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(300, 1000, 100, 7);
  CHECK_THROWS_AS(simulate(disaggregated(4), cost, trace, scaled({{1, true, 1}})),
                  std::invalid_argument);
  CHECK_THROWS_AS(simulate(disaggregated(4), cost, trace, scaled({{1, true, -4}})),
                  std::invalid_argument);
  CHECK_THROWS_AS(simulate(disaggregated(4), cost, trace, scaled({{1, false, -1}})),
                  std::invalid_argument);
  auto by_request = disaggregated(4);
  by_request.partition = partition_kind::requests;
  const auto r = simulate(by_request, cost, trace, scaled({{1, true, 1}}));
  CHECK(r.requests == 300);
  CHECK(r.scalings == 1);
}

TEST_CASE("L-M03 a replica or a server comes when it has its weights, and goes with its batch") {
  const auto cost = cost_of("LLaMA-65B");
  const auto trace = uniform_trace(900, 1000, 200, 7);
  auto rotating = disaggregated(4);
  rotating.batches = 3;
  rotating.replicas = 2;
  for (const auto& d : {disaggregated(4), rotating, homogeneous()}) {
    INFO(describe(d));
    const auto as_it_was = simulate(d, cost, trace);
    const auto more = simulate(d, cost, trace, scaled({{1, false, 1}}));
    const auto both = simulate(d, cost, trace, scaled({{1, false, 1}, {20, false, -1}}));
    for (const auto* r : {&more, &both}) {
      CHECK(r->requests == 900);
      CHECK(r->tokens == as_it_was.tokens);
      CHECK(r->running_over_time == doctest::Approx(r->rate_times_stay).epsilon(0.01));
    }
    if (!d.disaggregated()) {
      CHECK(more.seconds < 0.75 * as_it_was.seconds);
      CHECK(both.recomputed_tokens > 0); // its KV went with it
      CHECK(both.seconds > more.seconds);
    } else {
      CHECK(both.recomputed_tokens == 0); // the KV was elsewhere
      CHECK(more.seconds < 1.05 * as_it_was.seconds);
    }
    CHECK(more.mean_usd_per_hour > as_it_was.mean_usd_per_hour);
  }
}

TEST_CASE("L-M03 scaling goes together with prompts, and the same run twice is the same") {
  const auto cost = cost_of("LLaMA-65B");
  const auto trace = with_arrivals(uniform_trace(400, 900, 100, 17), 4, 17);
  auto pool = disaggregated(4);
  pool.prefill = of(2, "H100-SXM");
  pool.prefill_servers = 1;
  auto beside = homogeneous();
  beside.prefill_beside = true;
  auto both = disaggregated(4);
  both.prefill_beside = true;
  auto events = scaled({{10, false, 1}, {30, false, -1}});
  events.load = load_kind::arrivals;
  for (auto d : {pool, beside, both}) {
    INFO(describe(d));
    auto o = events;
    if (d.disaggregated()) {
      o.scalings.push_back({20, true, 4});
      o.scalings.push_back({40, true, -6});
    }
    const auto r = simulate(d, cost, trace, o);
    CHECK(r.requests == 400);
    CHECK(r.ttft.count() == 400);
    CHECK(r.scalings == o.scalings.size());
    CHECK(simulate(d, cost, trace, o).seconds == r.seconds);
  }
}
