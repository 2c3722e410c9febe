#include "scheduler/planner/planner.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

plan_question question() {
  plan_question q;
  for (const char* name : {"H100-SXM", "H20"})
    q.menu.push_back(*find_device(built_in_devices(), name));
  q.host = {2e-3, 100e-6};
  return q;
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

} // namespace

TEST_CASE("L-M33 L-M24 the search knows homogeneous designs, and only legal ones") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto q = question();
  const auto all = enumerate_designs(q, cost);
  CHECK(std::count_if(all.begin(), all.end(), [](auto& d) { return !d.disaggregated(); }) >= 4);
  for (const auto& d : all) {
    CHECK_FALSE(refuse(d, cost));
    CHECK(d.devices() <= q.devices_max);
    if (d.disaggregated() && d.partition == partition_kind::heads) CHECK(8 % d.memory.count == 0);
  }
}

TEST_CASE(
    "L-M06 the search knows NICs: one for each device, shared, or several where one is slow") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto q = question();
  const auto all = enumerate_designs(q, cost);
  const auto with = [&](uint32_t compute, uint32_t memory) {
    return std::find_if(all.begin(), all.end(), [&](const decode_design& d) {
      return d.compute.kind.name == "H100-SXM" && d.compute.count == 2 && d.memory.count == 4
             && d.memory.kind.name == "H20" && d.batches == 2 && d.compute.nics == compute
             && d.memory.nics == memory;
    });
  };
  REQUIRE(with(0, 0) != all.end()); // one each
  REQUIRE(with(0, 2) != all.end()); // two that four devices share are as many as the others have
  CHECK(with(1, 1) != all.end());
  CHECK(with(1, 2) == all.end()); // the second could never be fed
  CHECK(with(4, 0) == all.end()); // the slots take no more
  // Where the other side has no more, sharing saves money and power and nothing gets slower.
  const auto trace = uniform_trace(100, 1000, 100, 7);
  const auto w = workload_of(trace);
  const auto own = estimate(*with(0, 0), q, cost, w), shared = estimate(*with(0, 2), q, cost, w);
  CHECK(shared.tokens_per_s == doctest::Approx(own.tokens_per_s));
  CHECK(shared.usd_per_mtok < own.usd_per_mtok);
  CHECK(shared.joules_per_token < own.joules_per_token);
  CHECK(estimate(*with(1, 1), q, cost, w).tokens_per_s < 0.97 * own.tokens_per_s);
  CHECK(describe(*with(0, 2)) == "DOP (2,4) H100-SXM + H20, n = 2, NICs 2 + 2");
  // Devices behind slow NICs may have several.
  auto slow = q;
  slow.menu = {*find_device(built_in_devices(), "L40S"), *find_device(built_in_devices(), "A10G")};
  const auto eight = enumerate_designs(slow, cost_of("LLaMA3-8B"));
  CHECK(std::any_of(eight.begin(), eight.end(), [](const decode_design& d) {
    return d.memory.kind.name == "A10G" && d.memory.nics == 4 * d.memory.count;
  }));
  // The best of all numbers of NICs goes on, and stands for the design.
  std::vector<plan_row> rows;
  for (const auto& d : all) rows.push_back(estimate(d, q, cost, w));
  rank(rows, q);
  const auto best = best_of_nics(rows);
  CHECK(best.size() < rows.size() / 2);
  CHECK(best.front().usd_per_mtok == rows.front().usd_per_mtok);
}

TEST_CASE("L-M06 a network that is too narrow is named with the NICs that make it so") {
  const auto cost = cost_of("LLaMA-65B"); // every head has K and V of its own
  auto q = question();
  decode_design d;
  d.batches = 1; // waits for every step
  d.compute = {q.menu[0], 4};
  d.memory = with_nics({q.menu[1], 8}, 2, cost.values());
  const auto w = workload_of(uniform_trace(100, 200, 100, 7));
  const auto row = estimate(d, q, cost, w);
  INFO(row.bound);
  CHECK(row.bound.ends_with("network, 2 NICs of 8 x H20"));
  d.memory = {q.menu[1], 8};
  CHECK(estimate(d, q, cost, w).tokens_per_s > row.tokens_per_s);
}

TEST_CASE("L-M27 NICs that are too few for the KV of prompts are no saving") {
  const auto cost = cost_of("LLaMA-65B");
  const auto q = question();
  decode_design d;
  d.compute = with_nics({q.menu[1], 8}, 1, cost.values());
  d.host = q.host;
  const auto row = estimate(d, q, cost, workload_of(uniform_trace(100, 4000, 4, 7)));
  CHECK(row.misses.find("the KV of prompts arrives at") != std::string::npos);
  CHECK(row.miss > 1);
  d.compute.nics = 0;
  CHECK(estimate(d, q, cost, workload_of(uniform_trace(100, 4000, 4, 7))).ok());
  d.compute.nics = 1;
  CHECK(estimate(d, q, cost, workload_of(uniform_trace(100, 400, 200, 7))).ok());
}

TEST_CASE("the estimate is within a tenth of the simulation where requests are alike") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto q = question();
  const auto trace = uniform_trace(4000, 1500, 150, 7);
  const auto w = workload_of(trace);
  int seen = 0;
  for (const auto& d : enumerate_designs(q, cost)) {
    if (d.devices() > 6 || d.compute.count < 2 || (d.disaggregated() && d.batches > 2)) continue;
    const auto e = estimate(d, q, cost, w);
    if (e.batch < 20) continue;
    INFO(describe(d));
    CHECK(simulate(d, cost, trace).tokens_per_s == doctest::Approx(e.tokens_per_s).epsilon(0.1));
    ++seen;
  }
  CHECK(seen > 5);
}

TEST_CASE("a TBT limit is kept by taking fewer requests, and costs throughput") {
  const auto cost = cost_of("LLaMA3-70B");
  auto q = question();
  const auto trace = uniform_trace(3000, 1200, 200, 7);
  const auto w = workload_of(trace);
  decode_design d;
  d.compute = {q.menu[0], 2};
  d.memory = {q.menu[1], 4};
  d.host = q.host;
  const auto free = evaluate(estimate(d, q, cost, w), q, cost, trace);
  CHECK(free.ok());
  q.limits = {{latency_metric::tbt, 0.99, 0.060}};
  const auto bound = evaluate(estimate(d, q, cost, w), q, cost, trace);
  CHECK(bound.ok());
  CHECK(bound.tbt.quantile(0.99) <= 0.060);
  CHECK(bound.tokens_per_s < free.tokens_per_s);
  CHECK(bound.usd_per_mtok > free.usd_per_mtok);
  CHECK(bound.bound.starts_with("TBT limit"));
  q.limits = {{latency_metric::tbt, 0.99, 0.001}};
  const auto never = evaluate(estimate(d, q, cost, w), q, cost, trace);
  CHECK_FALSE(never.ok());
  CHECK(never.misses.find("limit 1 ms") != std::string::npos);
  // A limit is printed as it was given, however small.
  q.limits = {{latency_metric::tbt, 0.99, 0.00001}};
  CHECK(estimate(d, q, cost, w).misses.ends_with("limit 0.01 ms"));
  CHECK(evaluate(estimate(d, q, cost, w), q, cost, trace).misses.ends_with("limit 0.01 ms"));
}

TEST_CASE("S-M20 a rate is served by as many copies as it needs, and TTFT is looked at") {
  const auto cost = cost_of("LLaMA3-70B");
  auto q = question();
  q.rate = 60;
  q.limits = {{latency_metric::ttft, 0.9, 2.0}};
  const auto trace = uniform_trace(3000, 1200, 200, 7);
  decode_design d;
  d.compute = {q.menu[1], 4};
  d.host = q.host;
  const auto row = evaluate(estimate(d, q, cost, workload_of(trace)), q, cost, trace);
  CHECK(row.ok());
  CHECK(row.copies * row.tokens_per_s >= 60 * 200 * 0.97);
  CHECK(row.copies >= 2);
  CHECK(row.usd_per_hour() == doctest::Approx(row.copies * 4 * 4.63));
  CHECK(row.usd_per_mtok
        == doctest::Approx(row.usd_per_hour() / 3600 / (60 * workload_of(trace).output) * 1e6));
}

TEST_CASE("the ranking puts kept limits first, and the verdict says not to disaggregate") {
  const auto q = question();
  plan_row cheap, dear, broken;
  cheap.design.compute = {q.menu[1], 4};
  cheap.usd_per_mtok = 2;
  dear.design.compute = {q.menu[0], 2};
  dear.design.memory = {q.menu[1], 4};
  dear.usd_per_mtok = 4;
  broken.usd_per_mtok = 1;
  broken.misses = "TBT";
  std::vector<plan_row> rows{broken, dear, cheap};
  rank(rows, q);
  CHECK(rows[0].usd_per_mtok == 2);
  CHECK(rows[2].usd_per_mtok == 1);
  const auto says = verdict(rows, q);
  CHECK(says.starts_with("Do not disaggregate: 4 x H20"));
  CHECK(says.find("50 % less money") != std::string::npos);
  rows = {dear, broken};
  CHECK(verdict(rows, q).starts_with("Disaggregate"));
  plan_row nearer = broken;
  nearer.usd_per_mtok = 9;
  nearer.miss = 1.5;
  broken.miss = 3;
  rows = {broken, nearer};
  rank(rows, q);
  CHECK(rows[0].miss == 1.5); // the nearest miss, though it costs more
  rows = {broken};
  CHECK(verdict(rows, q).find("nearest") != std::string::npos);
  rows = {cheap};
  CHECK(verdict(rows, q).ends_with("holds the model."));
  auto limited = q;
  limited.limits = {{latency_metric::tbt, 0.99, 0.1}};
  CHECK(verdict(rows, limited).ends_with("keeps the limits."));
}

TEST_CASE(
    "a budget is kept by the estimate and by the simulation, and says by how much it is missed") {
  const auto cost = cost_of("LLaMA3-70B");
  auto q = question();
  q.usd_per_hour_max = 30;
  const auto trace = uniform_trace(500, 1000, 100, 7);
  const auto w = workload_of(trace);
  decode_design d;
  d.host = q.host;
  d.compute = {q.menu[1], 4}; // $18.52
  CHECK(evaluate(estimate(d, q, cost, w), q, cost, trace).ok());
  d.compute = {q.menu[0], 4}; // $44.24
  const auto row = estimate(d, q, cost, w);
  CHECK(row.misses == "$44.24 per hour, limit $30.00");
  CHECK(row.miss == doctest::Approx(44.24 / 30));
  CHECK_FALSE(evaluate(row, q, cost, trace).ok());
}

TEST_CASE("what the best depends on says from what to what, and what cannot be says why") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto q = question();
  const auto w = workload_of(uniform_trace(100, 1000, 100, 7));
  decode_design d;
  d.compute = {*find_device(built_in_devices(), "H100-SXM"), 4};
  d.host = q.host;
  plan_row row;
  row.design = d;
  const auto of = [&](const plan_question& asked, const cost_model& with, const char* name) {
    for (const auto& x : sensitivities(row, asked, with, w))
      if (x.constant == name) return x;
    return sensitivity{};
  };
  const auto memory = of(q, cost, "memory_utilization");
  CHECK(memory.from == 0.9);
  CHECK(memory.to == 1); // a fifth more than 0.9 is more than there is
  CHECK(memory.percent < 0);
  const auto host = of(q, cost, "host_request_us");
  CHECK(host.to == doctest::Approx(1.2 * host.from));
  CHECK(host.percent > 0);
  // Of power and of time as of money, all being shared by the same tokens.
  for (const auto objective : {plan_objective::power, plan_objective::throughput}) {
    auto other = q;
    other.objective = objective;
    CHECK(of(other, cost, "host_request_us").percent == doctest::Approx(host.percent));
  }
  // Devices without a price have a power all the same.
  auto free = q;
  free.objective = plan_objective::power;
  row.design.compute.kind.usd_per_hour = 0;
  CHECK(of(free, cost, "host_request_us").percent == doctest::Approx(host.percent));
  // With more for other things the weights do not fit any more.
  constants tight;
  tight.workspace_gb = 37;
  const auto full = of(q, cost_model{cost.model(), tight}, "workspace_gb");
  CHECK(full.refused.find("137.5 GB") != std::string::npos);
}

TEST_CASE("names of devices do not break the picture") {
  plan_row row;
  row.design.compute = {*find_device(built_in_devices(), "H20"), 1};
  row.design.compute.kind.name = "A<B&C";
  row.tbt.add(0.03);
  row.usd_per_mtok = 1;
  const auto svg = frontier_svg({row});
  CHECK(svg.find("A<B") == std::string::npos);
  CHECK(svg.find("A&lt;B&amp;C") != std::string::npos);
}

TEST_CASE(
    "a batch that holds all of a short trace, or a limit on TTFT, is not said to be memory's") {
  const auto cost = cost_of("LLaMA3-8B");
  auto q = question();
  decode_design d;
  d.compute = {*find_device(built_in_devices(), "H100-SXM"), 1};
  const auto bound = [&](const request_trace& trace) {
    return evaluate(estimate(d, q, cost, workload_of(trace)), q, cost, trace).bound;
  };
  CHECK(bound(uniform_trace(40, 500, 40, 7)).starts_with("requests of the trace; "));
  CHECK(bound(uniform_trace(3000, 500, 40, 7)).starts_with("KV memory; "));
  q.rate = 440;
  q.limits = {{latency_metric::ttft, 0.99, 0.04}};
  CHECK(bound(uniform_trace(3000, 500, 40, 7)).starts_with("TTFT limit; "));
}

TEST_CASE("L-M27 with a rate, NICs take the KV of the prompts that come, and no more is asked") {
  const auto cost = cost_of("LLaMA-65B");
  auto q = question();
  decode_design d;
  d.compute = with_nics({q.menu[1], 2}, 1, cost.values());
  d.host = q.host;
  const auto trace = uniform_trace(100, 8000, 4, 7);
  const auto w = workload_of(trace);
  CHECK_FALSE(estimate(d, q, cost, w).ok()); // at full throughput
  q.rate = 0.05;                             // 1.05 GB/s
  const auto guess = estimate(d, q, cost, w);
  CHECK(guess.ok());
  CHECK(guess.copies == 1);
  CHECK(guess.usd_per_hour() == doctest::Approx(2 * 4.63 - 0.08 * 4.63));
  CHECK(evaluate(guess, q, cost, trace).ok());
  // As many copies as throughput needs share what comes; each may still have too few NICs.
  auto wide = d;
  wide.compute.nics = 0;
  q.rate = 50;
  const auto copies = estimate(wide, q, cost, w).copies;
  REQUIRE(copies > 1);
  const auto row = estimate(d, q, cost, w);
  CHECK(row.copies == copies);
  CHECK(row.miss
        == doctest::Approx(50.0 / copies * w.prompt * cost.model().kv_bytes_per_token()
                           / nic_bandwidth(d.compute, cost.values())));
}
