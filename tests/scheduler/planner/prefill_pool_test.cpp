// Prompts in simulated runs: on servers of their own, and beside decoding.
#include "scheduler/planner/kv_arrivals.hpp"
#include "scheduler/planner/planner.hpp"
#include "scheduler/planner/prefill_pool.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}
cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

decode_design disaggregated() {
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(4, "H20");
  d.prefill = of(2, "H100-SXM");
  d.prefill_servers = 2;
  return d;
}

decode_design homogeneous() {
  decode_design d;
  d.compute = of(4, "H100-SXM");
  d.block_slots = d.window_slots = 16;
  d.prefill_beside = true;
  return d;
}

simulation_options at_arrivals() {
  simulation_options o;
  o.load = load_kind::arrivals;
  return o;
}

} // namespace

TEST_CASE("S-M10 a server takes whole prompts up to its limit, or a longer one alone") {
  const auto cost = cost_of("LLaMA3-70B");
  prefill_pool pool{cost, of(2, "H100-SXM"), 2, 2048};
  for (const uint32_t tokens : {1000u, 1000u, 100u, 5000u, 10u}) pool.add({tokens, 0, tokens});
  pool.start(0);
  CHECK(pool.waiting() == 2); // 1000 + 1000 on one server, 100 on the other: 5000 waits for one
  const auto first = pool.next_end();
  CHECK(first == doctest::Approx(cost.prefill_s(of(2, "H100-SXM"), 100)));
  auto done = pool.finish(first);
  REQUIRE(done.size() == 1);
  CHECK(done[0].prompt.index == 100);
  pool.start(first);
  CHECK(pool.waiting() == 1); // 10 does not join 5000
  uint32_t ends = 1;
  while (pool.next_end() < 1e300) {
    const auto now = pool.next_end();
    ends += static_cast<uint32_t>(pool.finish(now).size());
    pool.start(now);
  }
  CHECK(ends == 5);
  CHECK(pool.waiting() == 0);
  CHECK(pool.busy_s(1e6) > cost.prefill_s(of(2, "H100-SXM"), 5000));
}

TEST_CASE("servers have worked on a prompt for as long as it has been under way") {
  const auto cost = cost_of("LLaMA3-70B");
  prefill_pool pool{cost, of(2, "H100-SXM"), 3};
  CHECK(pool.busy_s(1) == 0);
  for (const uint32_t index : {1u, 2u}) pool.add({index, 0, 3000});
  pool.start(1);
  CHECK(pool.busy_s(1) == 0);
  const auto one = pool.next_end() - 1;
  CHECK(pool.busy_s(1 + one / 4) == doctest::Approx(one / 2)); // two of three servers
  CHECK(pool.busy_s(1 + 2 * one) == doctest::Approx(2 * one)); // they are done, and not yet asked
  pool.finish(1 + one);
  CHECK(pool.busy_s(1 + 2 * one) == doctest::Approx(2 * one));
}

TEST_CASE("servers that are too many end their prompts before they go") {
  const auto cost = cost_of("LLaMA3-70B");
  prefill_pool pool{cost, of(2, "H100-SXM"), 1};
  for (const uint32_t index : {1u, 2u, 3u}) pool.add({index, 0, 3000});
  pool.start(0);
  REQUIRE(pool.oldest() != nullptr);
  CHECK(pool.oldest()->index == 2);
  pool.resize(3);
  pool.start(0.1);
  CHECK(pool.waiting() == 0);
  CHECK(pool.oldest() == nullptr);
  pool.resize(1);
  for (const uint32_t index : {4u, 5u}) pool.add({index, 0, 3000});
  std::vector<uint32_t> order;
  double now = 0.1;
  while (pool.next_end() < 1e300) {
    now = pool.next_end();
    for (const auto& x : pool.finish(now)) order.push_back(x.prompt.index);
    pool.start(now);
  }
  CHECK(order == std::vector<uint32_t>{1, 2, 3, 4, 5});
  // Of the three, one was left to take the others, one after the other.
  CHECK(now > 3 * cost.prefill_s(of(2, "H100-SXM"), 3000));
}

TEST_CASE("L-M27 a request alone: its prompt, the last layer of its KV, then token by token") {
  auto d = disaggregated();
  d.batches = 1;
  const auto cost = cost_of("LLaMA3-70B");
  const auto r = simulate(d, cost, {{0, 1000, 11, {}}}, at_arrivals());
  const auto prompt = cost.prefill_s(d.prefill, 1000);
  CHECK(r.ttft.mean() == doctest::Approx(prompt));
  const auto bytes = 1000 * cost.model().kv_bytes_per_token();
  const auto path = cost.path(d.network, d.prefill, d.memory);
  CHECK(bytes / path.bandwidth < prompt); // hidden but for one layer
  double expected = prompt + bytes / path.bandwidth / 80;
  for (int i = 0; i < 10; ++i) expected += times_of(d, cost, 1, 1001.0 + i).alone();
  CHECK(r.e2e.mean() == doctest::Approx(expected));
  CHECK(r.tokens == 11);
  CHECK(r.tbt.count() == 10);
}

TEST_CASE("L-M06 L-M28 KV of several prompts shares the keepers' NICs, behind decoding's QKV") {
  const auto cost = cost_of("LLaMA-65B");
  auto d = disaggregated();
  d.memory = with_nics(d.memory, 1, cost.values());
  const auto path = cost.path(d.network, d.prefill, d.memory);
  REQUIRE(path.other < path.one);
  const auto receiving = 4000 * cost.model().kv_bytes_per_token() / path.other;
  kv_arrivals quiet{d, cost};
  // Computed for longer than it takes to send: all but the last layer is there.
  CHECK(quiet.arrival(4000, 0, 2 * receiving, 0)
        == doctest::Approx(2 * receiving + receiving / cost.model().layers));
  // Three servers end at once, when one's KV could have arrived.
  kv_arrivals busy{d, cost};
  for (int i = 1; i <= 3; ++i)
    CHECK(busy.arrival(4000, 1, 1 + receiving / 2, 0) == doctest::Approx(1 + i * receiving));
  // Decoding has the NIC for three quarters of the time.
  kv_arrivals behind{d, cost};
  CHECK(behind.arrival(4000, 0, receiving, 0.75) == doctest::Approx(4 * receiving));
  CHECK(behind.arrival(4000, 1e6, 1e6, 1) < 1e6 + 21 * receiving); // never for ever
}

TEST_CASE("L-M06 prompts that come together wait for a NIC that they share, not for their token") {
  const auto cost = cost_of("LLaMA-65B");
  auto d = disaggregated();
  d.prefill_servers = 4;
  const request_trace four(4, {0, 4000, 20, {}});
  const auto wide = simulate(d, cost, four, at_arrivals());
  d.memory = with_nics(d.memory, 1, cost.values());
  const auto narrow = simulate(d, cost, four, at_arrivals());
  CHECK(narrow.ttft.max() == wide.ttft.max());
  CHECK(narrow.e2e.max() > wide.e2e.max() + 0.3);
}

TEST_CASE("L-M27 V-M16 all requests end with all their tokens, with prompts here or there") {
  const auto trace = uniform_trace(400, 900, 54, 17);
  uint64_t tokens = 0;
  for (const auto& x : trace) tokens += x.output_tokens;
  const auto cost = cost_of("LLaMA-65B");
  auto beside = disaggregated();
  beside.prefill_servers = 0;
  beside.prefill_beside = true;
  auto by_request = disaggregated();
  by_request.partition = partition_kind::requests;
  auto served = homogeneous();
  served.prefill_beside = false;
  served.prefill = of(2, "H100-SXM");
  served.prefill_servers = 1;
  for (const auto& d : {disaggregated(), by_request, beside, homogeneous(), served})
    for (const bool arrivals : {false, true}) {
      INFO(describe(d));
      simulation_options o;
      if (arrivals) o = at_arrivals();
      const auto r = simulate(d, cost, arrivals ? with_arrivals(trace, 5, 7) : trace, o);
      CHECK(r.requests == 400);
      CHECK(r.tokens == tokens);
      CHECK(r.ttft.count() == 400);
      CHECK(r.e2e.count() == 400);
      CHECK(r.running_over_time == doctest::Approx(r.rate_times_stay).epsilon(0.01));
    }
}

TEST_CASE("V-M16 prompts beside decoding come in chunks, and cost those who decode some time") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = homogeneous();
  const auto alone = simulate(d, cost, {{0, 1024, 1, {}}}, at_arrivals());
  CHECK(alone.iterations == 2); // twice 512
  CHECK(alone.ttft.mean()
        == doctest::Approx(2 * cost.model_s(d.compute, 512) + 2 * cost.all_reduce_s(d.compute, 512)
                           + cost.prompt_attention_s(d.compute, 1024, 0)));
  const auto trace = with_arrivals(uniform_trace(300, 2000, 100, 7), 3, 7);
  const auto busy = simulate(d, cost, trace, at_arrivals());
  d.prefill_beside = false;
  const auto free = simulate(d, cost, trace, at_arrivals());
  CHECK(busy.tbt.quantile(0.9) > 1.5 * free.tbt.quantile(0.9));
  CHECK(busy.ttft.mean() > free.ttft.mean());
  d.prefill = of(4, "H100-SXM");
  d.prefill_servers = 1;
  const auto pool = simulate(d, cost, trace, at_arrivals());
  CHECK(pool.tbt.quantile(0.9) < busy.tbt.quantile(0.9)); // what splitting phases is for
}

TEST_CASE("S-M20 limits on TTFT see prompts: a slow pool for them costs copies") {
  const auto cost = cost_of("LLaMA3-70B");
  plan_question q;
  q.menu = {of(1, "H100-SXM").kind, of(1, "H20").kind};
  q.rate = 4;
  q.limits = {{latency_metric::ttft, 0.9, 1.0}};
  const auto trace = uniform_trace(300, 3000, 50, 7);
  const auto w = workload_of(trace);
  auto d = disaggregated();
  const auto fast = evaluate(estimate(d, q, cost, w), q, cost, trace);
  CHECK(fast.ok());
  d.prefill_servers = 1;
  d.prefill = of(2, "H20");
  const auto guess = estimate(d, q, cost, w);
  CHECK(guess.bound == "prompts");
  const auto slow = evaluate(guess, q, cost, trace);
  CHECK(slow.copies > fast.copies);
  // Every design of a question has what it asks for.
  q.prefill = of(2, "H100-SXM");
  q.prefill_servers = 1;
  for (const auto& x : enumerate_designs(q, cost)) {
    CHECK(x.prefill_servers == 1);
    CHECK(x.devices() <= q.devices_max);
  }
}
