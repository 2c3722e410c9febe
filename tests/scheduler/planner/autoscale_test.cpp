// The live autoscaler in simulated runs.
#include "scheduler/planner/scaling_replay.hpp"
#include "scheduler/planner/simulator.hpp"
#include "scheduler/scaling_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

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

simulation_options autoscaled(autoscaling::bounds model, autoscaling::bounds memory = {},
                              autoscaling::bounds prefill = {}) {
  simulation_options o;
  o.load = load_kind::arrivals;
  o.autoscale.emplace();
  o.autoscale->pools = {{model, memory, prefill}};
  return o;
}

/// Some minutes of few requests, of many, and of few again.
request_trace wave(double low, double high, uint32_t prompt = 2000, uint32_t output = 300) {
  const auto part = [&](double rate, double from, uint64_t seed) {
    auto x = with_arrivals(uniform_trace(static_cast<size_t>(rate * 300), prompt, output, seed),
                           rate, seed);
    for (auto& r : x) r.arrival_s += from;
    return x;
  };
  auto all = part(low, 0, 1);
  for (const auto& more : {part(high, 300, 2), part(low, 600, 3), part(low, 900, 4)})
    all.insert(all.end(), more.begin(), more.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.arrival_s < b.arrival_s; });
  return all;
}

/// How often the steps of a pool change their direction.
uint32_t turns(const simulation_result& r, scaled_pool pool) {
  uint32_t count = 0;
  int last = 0;
  for (const auto& x : r.steps) {
    if (x.step.pool != pool) continue;
    const int way = x.step.to > x.step.from ? 1 : -1;
    if (last != 0 && way != last) ++count;
    last = way;
  }
  return count;
}

} // namespace

TEST_CASE("L-M19 memory devices follow the KV in use, by the divisors of the KV heads") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(1, 10);
  const auto o = autoscaled({}, {1, 8});
  const auto r = simulate(disaggregated(1), cost, trace, o);
  CHECK(r.requests == trace.size());
  REQUIRE(r.steps.size() >= 2);
  std::set<uint32_t> sizes;
  for (const auto& x : r.steps) {
    CHECK(x.step.pool == scaled_pool::attention);
    CHECK(8 % x.step.to == 0);
    sizes.insert(x.step.to);
  }
  CHECK(r.steps.front().at_s > 300);
  CHECK(r.steps.front().at_s < 400);
  CHECK(r.steps.back().step.to < r.steps.back().step.from);
  CHECK(turns(r, scaled_pool::attention) == 1);
  CHECK(r.scalings == r.steps.size());
  // Fewer devices than with the most all the time, and better times than with the least.
  CHECK(r.device_hours < 0.9 * r.most_device_hours);
  CHECK(r.most_device_hours == doctest::Approx(10 * r.seconds / 3600));
  simulation_options fixed;
  fixed.load = load_kind::arrivals;
  const auto least = simulate(disaggregated(1), cost, trace, fixed);
  CHECK(r.ttft.quantile(0.99) < 0.5 * least.ttft.quantile(0.99));
  CHECK(least.device_hours == doctest::Approx(3 * least.seconds / 3600));
  CHECK(least.steps.empty());
}

TEST_CASE("servers of a homogeneous design follow the KV in use") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(0.5, 20);
  const auto r = simulate(homogeneous(), cost, trace, autoscaled({1, 4}));
  CHECK(r.requests == trace.size());
  REQUIRE_FALSE(r.steps.empty());
  CHECK(r.steps.front().step.pool == scaled_pool::model);
  CHECK(r.steps.front().step.to == 2);
  CHECK(turns(r, scaled_pool::model) <= 1);
}

TEST_CASE("servers for prompts follow the queue, one by one when their weights are there") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(0.5, 6);
  auto d = disaggregated(8);
  d.prefill = of(2, "H100-SXM");
  d.prefill_servers = 1;
  auto o = autoscaled({}, {}, {1, 6});
  o.autoscale->ttft_target = scaling_seconds{2};
  const auto r = simulate(d, cost, trace, o);
  CHECK(r.requests == trace.size());
  REQUIRE_FALSE(r.steps.empty());
  for (const auto& x : r.steps) CHECK(x.step.pool == scaled_pool::prefill);
  CHECK(r.steps.back().step.to < r.steps.back().step.from);
  CHECK(r.prefill_busy > 0.05);
  CHECK(r.prefill_busy < 1);
  simulation_options fixed;
  fixed.load = load_kind::arrivals;
  CHECK(r.ttft.quantile(0.9) < simulate(d, cost, trace, fixed).ttft.quantile(0.9));
}

TEST_CASE("L-M19 a late TBT gets replicas while attention keeps up") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(10, 10, 200, 300);
  auto o = autoscaled({1, 3}, {8, 8});
  const auto free = simulate(disaggregated(8), cost, trace, o);
  CHECK(free.steps.empty());
  o.autoscale->tbt_target = scaling_seconds{0.97 * free.tbt.quantile(0.9)};
  o.autoscale->settings.hold_up = scaling_seconds{2};
  const auto r = simulate(disaggregated(8), cost, trace, o);
  CHECK(r.requests == trace.size());
  REQUIRE_FALSE(r.steps.empty());
  CHECK(r.steps.front().step.pool == scaled_pool::model);
  CHECK(r.steps.front().step.reason.find("attention keeps up") != std::string::npos);
}

TEST_CASE("what the autoscaler saw in a run gives the same decisions again") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(1, 10);
  auto d = disaggregated(2);
  d.prefill = of(2, "H100-SXM");
  d.prefill_servers = 2;
  auto o = autoscaled({1, 2}, {1, 8}, {1, 6});
  o.autoscale->tbt_target = scaling_seconds{0.08};
  std::string text = text_of(o.autoscale->settings) + "\n";
  o.on_look = [&](const scaling_look& x) { text += text_of(x) + "\n"; };
  const auto r = simulate(d, cost, trace, o);
  REQUIRE(r.steps.size() > 2);
  std::istringstream in{text};
  std::vector<scaling_record> again;
  for (const auto& x : replay_scaling(in))
    if (x.decision.step) again.push_back({x.at.count(), *x.decision.step});
  REQUIRE(again.size() == r.steps.size());
  for (size_t i = 0; i < again.size(); ++i) {
    CHECK(again[i].at_s == r.steps[i].at_s);
    CHECK(again[i].step == r.steps[i].step);
  }
  o.on_look = {};
  CHECK(simulate(d, cost, trace, o).seconds == r.seconds);
}

TEST_CASE("an autoscaler that a design cannot follow is refused") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = wave(1, 2);
  const auto refused = [&](const decode_design& d, simulation_options o) {
    try {
      simulate(d, cost, trace, o);
    } catch (const std::invalid_argument& e) {
      return std::string{e.what()};
    }
    return std::string{};
  };
  CHECK(refused(homogeneous(), autoscaled({}, {1, 8})).find("no memory devices")
        != std::string::npos);
  CHECK(refused(disaggregated(4), autoscaled({}, {}, {1, 2})).find("no servers for prompts")
        != std::string::npos);
  CHECK(refused(disaggregated(4), autoscaled({}, {3, 3})).find("8 KV heads") != std::string::npos);
  auto saturated = autoscaled({1, 2});
  saturated.load = load_kind::saturated;
  CHECK(refused(disaggregated(4), saturated).find("saturated") != std::string::npos);
  auto cached = homogeneous();
  cached.prefix_cache_s = 60;
  CHECK(refused(cached, autoscaled({1, 2})).find("prefix cache") != std::string::npos);
}

TEST_CASE("prompts that wait for their first chunk beside decoding are in the queue that is seen") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = disaggregated(8);
  d.batches = 1;
  d.prefill_beside = true;
  auto o = autoscaled({1, 4});
  o.autoscale->settings.queue_age_high = scaling_seconds{1e6}; // no step: only what is seen counts
  std::vector<scaling_look> looks;
  o.on_look = [&](const scaling_look& x) { looks.push_back(x); };
  // Each takes some seconds, and the second begins when the first has ended.
  simulate(d, cost, request_trace(3, {0, 40'000, 20, {}}), o);
  REQUIRE(looks.size() > 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(looks[i].queue == 2);
    CHECK(looks[i].queue_age.count() == static_cast<double>(i));
  }
  CHECK(std::any_of(looks.begin(), looks.end(), [](const auto& x) { return x.queue == 1; }));
  CHECK(looks.back().queue == 0);
  CHECK(looks.back().queue_age.count() == 0);
  // The flood that no replica keeps up with gets more of them.
  const auto flood = with_arrivals(uniform_trace(600, 4000, 20, 1), 30, 1);
  const auto r = simulate(d, cost, flood, autoscaled({1, 4}));
  REQUIRE_FALSE(r.steps.empty());
  CHECK(r.steps.front().step.pool == scaled_pool::model);
  CHECK(r.steps.front().at_s < 20);
}

TEST_CASE("a server is seen to work while it computes a prompt that takes longer than a window") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = disaggregated(8);
  d.prefill = of(2, "H100-SXM");
  d.prefill_servers = 2;
  auto o = autoscaled({}, {}, {2, 2});
  std::vector<scaling_look> looks;
  o.on_look = [&](const scaling_look& x) { looks.push_back(x); };
  simulate(d, cost, {{0, 200'000, 2, {}}}, o);
  REQUIRE(cost.prefill_s(d.prefill, 200'000) > 40);
  REQUIRE(looks.size() > 40);
  for (size_t i = 11; i < 40; ++i)
    CHECK(looks[i].pools[scaled_pool::prefill].busy == doctest::Approx(0.5)); // one of two servers
}

TEST_CASE("a look tells of the last seconds, as many as the shortest cool-down has") {
  const auto cost = cost_of("LLaMA3-70B");
  auto o = autoscaled({1, 2});
  o.autoscale->settings.cool_up = scaling_seconds{2};
  std::vector<scaling_look> looks;
  o.on_look = [&](const scaling_look& x) { looks.push_back(x); };
  // Ten tokens within the first second, and ten after half a minute.
  simulate(disaggregated(8), cost, {{0, 100, 10, {}}, {30, 100, 10, {}}}, o);
  REQUIRE(looks.size() > 20);
  for (size_t i = 1; i < 20; ++i) {
    CAPTURE(i);
    CHECK(looks[i].tokens_per_s == (i == 1 ? 10 : i == 2 ? 5 : 0));
    CHECK((looks[i].ttft_p99.count() > 0) == (i <= 2));
    CHECK((looks[i].tbt_p99.count() > 0) == (i <= 2));
    CHECK((looks[i].model_work.count() > 0) == (i <= 2));
  }
}

TEST_CASE("who waits for KV asks for the slots, too, that are kept free for those who run") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = disaggregated(1);
  auto o = autoscaled({1, 2});
  uint32_t seen = 0;
  const auto kept = std::floor(slots_per_pool(d, cost) * d.kept_free_share);
  REQUIRE(kept > 1000);
  o.on_look = [&](const scaling_look& x) {
    if (x.kv_wanted == 0) return;
    ++seen;
    CHECK(x.kv_wanted == 20'000 + d.window_slots + kept);
  };
  simulate(d, cost, request_trace(40, {0, 20'000, 500, {}}), o);
  CHECK(seen > 3);
}
