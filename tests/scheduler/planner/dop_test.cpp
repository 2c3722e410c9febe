#include "scheduler/planner/dop.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace lamella::scheduler;

namespace {

decode_design design_of(uint32_t a, uint32_t n) {
  decode_design d;
  d.compute = {*find_device(built_in_devices(), "H100-SXM"), a};
  d.memory = {*find_device(built_in_devices(), "H20"), 1};
  d.batches = n;
  d.replicas = n - 1;
  return d;
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

} // namespace

TEST_CASE("L-M19 the memory devices are those whose attention takes a replica's turn") {
  const auto cost = cost_of("LLaMA-65B");
  for (const uint32_t n : {2u, 3u, 4u}) {
    const auto d = design_of(2, n);
    for (const double rows : {7.0, 17.0, 54.0}) {
      const auto context = rows * 4096;
      const auto b = memory_devices_for(d, cost, rows, context, 64);
      CAPTURE(n);
      CAPTURE(rows);
      CHECK(64 % b == 0);
      const auto turn = times_of(d, cost, rows, context).model / (n - 1);
      const auto off = [&](uint32_t k) {
        return std::abs(cost.attention_s({d.memory.kind, k}, rows, context) - turn);
      };
      for (uint32_t k = 1; k <= 64; k *= 2) CHECK(off(b) <= off(k));
    }
    // A shorter turn, or more to read, needs no fewer devices.
    CHECK(memory_devices_for(d, cost, 54, 54 * 8192, 64)
          >= memory_devices_for(d, cost, 54, 54 * 2048, 64));
  }
  CHECK(memory_devices_for(design_of(2, 4), cost, 54, 54 * 4096, 64)
        >= memory_devices_for(design_of(2, 2), cost, 54, 54 * 4096, 64));
}

TEST_CASE("L-M24 only divisors of the KV heads are chosen, unless whole requests are divided") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = design_of(4, 2);
  const auto context = 100.0 * 9000;
  CHECK(8 % memory_devices_for(d, cost, 100, context, 16) == 0);
  d.partition = partition_kind::requests;
  const auto b = memory_devices_for(d, cost, 100, context, 16);
  const auto turn = times_of(d, cost, 100, context).model;
  for (uint32_t k = 1; k <= 16; ++k)
    CHECK(std::abs(cost.attention_s({d.memory.kind, b}, 100, context) - turn)
          <= std::abs(cost.attention_s({d.memory.kind, k}, 100, context) - turn));
}

TEST_CASE("V-M17 few requests stay one batch, many are worth a second one") {
  const auto cost = cost_of("LLaMA3-70B");
  auto d = design_of(2, 2);
  d.memory.count = 4;
  CHECK(batches_for(d, cost, 4, 4 * 1000) == 1);
  CHECK(batches_for(d, cost, 800, 800 * 1228) == 2);
  d.replicas = 2;
  CHECK(batches_for(d, cost, 4, 4 * 1000) == 2);
  CHECK(batches_for(d, cost, 800, 800 * 1228) == 3);
}
