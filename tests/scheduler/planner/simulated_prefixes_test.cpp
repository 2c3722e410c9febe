// The prefix cache of simulated designs.
#include "scheduler/planner/simulator.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  const auto* d = find_device(built_in_devices(), name);
  REQUIRE(d != nullptr);
  return {*d, count};
}

cost_model cost() {
  const auto* m = find_model(built_in_models(), "LLaMA-65B");
  REQUIRE(m != nullptr);
  return cost_model{*m};
}

decode_design lamina() {
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(4, "H20");
  d.prefill_beside = true;
  return d;
}

/// Conversations of a few turns under one system prompt of four blocks.
request_trace conversations(uint32_t count) {
  lamella::tests::splitmix dice{5};
  request_trace trace;
  uint32_t fresh = 100;
  std::vector<uint32_t> blocks;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % 4 == 0) blocks = {1, 2, 3, 4};
    blocks.push_back(fresh++);
    trace_request x;
    x.prompt_tokens = static_cast<uint32_t>(512 * blocks.size() - dice.below(100));
    x.output_tokens = static_cast<uint32_t>(20 + dice.below(100));
    x.prefix_blocks = blocks;
    blocks.push_back(fresh++); // the answer, and what is asked next
    trace.push_back(x);
  }
  return trace;
}

uint64_t tokens_of(const request_trace& trace, uint32_t trace_request::*which) {
  uint64_t sum = 0;
  for (const auto& x : trace) sum += x.*which;
  return sum;
}

} // namespace

TEST_CASE("prefix cache, simulated: all requests end, with all their tokens, in every design") {
  const auto trace = conversations(600);
  auto by_request = lamina();
  by_request.partition = partition_kind::requests;
  auto with_kv = lamina();
  with_kv.prefill_beside = false;
  decode_design homogeneous;
  homogeneous.compute = of(4, "H100-SXM");
  homogeneous.block_slots = homogeneous.window_slots = 16;
  homogeneous.prefill_beside = true;
  for (auto d : {lamina(), by_request, with_kv, homogeneous}) {
    INFO(describe(d));
    const auto without = simulate(d, cost(), trace);
    CHECK(without.prefix_queries == 0);
    CHECK(without.prefix_hits == 0);
    d.prefix_cache_s = 600;
    const auto with = simulate(d, cost(), trace);
    CHECK(with.requests == trace.size());
    CHECK(with.tokens == tokens_of(trace, &trace_request::output_tokens));
    CHECK(with.prefix_queries >= tokens_of(trace, &trace_request::prompt_tokens));
    // Of 4.5 to 11.5 blocks, the four of the system prompt at least, but where many begin at once.
    CHECK(with.prefix_hits > with.prefix_queries / 4);
    CHECK(with.prefix_hits < with.prefix_queries);
    CHECK(with.seconds <= without.seconds * 1.01);
    if (d.prefill_beside) CHECK(with.seconds < without.seconds * 0.9);
  }
}

TEST_CASE("prefix cache, simulated: what is found is what the trace says, and for as long") {
  request_trace trace;
  for (uint32_t i = 0; i < 10; ++i) {
    trace_request x;
    x.arrival_s = 100.0 * i;
    x.prompt_tokens = 1000;
    x.output_tokens = 10;
    x.prefix_blocks = {7, i}; // the second is another one each time
    trace.push_back(x);
  }
  auto d = lamina();
  simulation_options o;
  o.load = load_kind::arrivals;
  d.prefix_cache_s = 150;
  CHECK(simulate(d, cost(), trace, o).prefix_hits == 9 * 512);
  d.prefix_cache_s = 50;
  CHECK(simulate(d, cost(), trace, o).prefix_hits == 0);
  for (auto& x : trace) x.prefix_blocks = {7, 8}; // the same prompt, but for its last token
  d.prefix_cache_s = 150;
  CHECK(simulate(d, cost(), trace, o).prefix_hits == 9 * 999);
  for (auto& x : trace) x.prefix_blocks.clear();
  CHECK(simulate(d, cost(), trace, o).prefix_queries == 0);
}

TEST_CASE("prefix cache, simulated: what is not simulated is refused") {
  auto d = lamina();
  d.prefix_cache_s = 600;
  simulation_options o;
  o.failures = {{1, true, 10}};
  CHECK_THROWS_AS(simulate(d, cost(), conversations(10), o), std::invalid_argument);
  d.prefill_beside = false;
  d.prefill = of(2, "H100-SXM");
  d.prefill_servers = 1;
  CHECK(refuse(d, cost())->find("KV of their own") != std::string::npos);
}

TEST_CASE("prefix cache, simulated: blocks of any number are told apart") {
  auto d = lamina();
  d.prefix_cache_s = 150;
  simulation_options o;
  o.load = load_kind::arrivals;
  request_trace trace(2, {0, 1000, 10, {1, 2}});
  trace[1].arrival_s = 100;
  trace[1].prefix_blocks = {1 + (1u << 23), 2 + (1u << 23)}; // 2^32 tokens further
  CHECK(simulate(d, cost(), trace, o).prefix_hits == 0);
  trace[0].prefix_blocks[0] = trace[1].prefix_blocks[0] = UINT32_MAX;
  CHECK(simulate(d, cost(), trace, o).prefix_hits == 512);
  // More blocks than there are tokens to make them of.
  trace[1].prefix_blocks.clear();
  for (uint32_t i = 0; i <= 1u << 23; ++i) trace[1].prefix_blocks.push_back(i);
  CHECK_THROWS_AS(simulate(d, cost(), trace, o), std::invalid_argument);
}
