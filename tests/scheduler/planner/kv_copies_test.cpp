// KV heads where attention runs beside the weights: every tensor-parallel device has those that its
// query heads read.
#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

} // namespace

TEST_CASE("L-M24 more tensor-parallel devices than KV heads keep copies, and read them") {
  const auto cost = cost_of("LLaMA3-70B"); // 8 KV heads
  const auto kv_s = [&](uint32_t devices) {
    decode_design d;
    d.compute = of(devices, "H100-SXM");
    const auto one = times_of(d, cost, 32, 32 * 100'000.0).model,
               none = times_of(d, cost, 32, 0).model;
    return one - none;
  };
  CHECK(kv_s(8) == doctest::Approx(kv_s(4) / 2).epsilon(0.01));
  CHECK(kv_s(16) == doctest::Approx(kv_s(8)).epsilon(0.01)); // each reads one head, as before
  decode_design d;
  d.compute = of(16, "H100-SXM");
  CHECK(slots_per_pool(d, cost)
        == doctest::Approx(cost.kv_tokens(d.compute, cost.model().weight_bytes) / 2).epsilon(1e-3));
}

TEST_CASE("L-M24 KV heads that tensor parallelism cannot divide are refused where KV is beside") {
  model_shape odd = *find_model(built_in_models(), "LLaMA3-8B");
  odd.heads = 24;
  odd.kv_heads = 8;
  const cost_model cost{odd};
  decode_design d;
  d.compute = of(3, "H100-SXM");
  REQUIRE(refuse(d, cost));
  CHECK(refuse(d, cost)->find("8 KV heads") != std::string::npos);
  d.memory = of(4, "H20");
  CHECK_FALSE(refuse(d, cost)); // the memory devices have the heads
}

TEST_CASE("weights and KV of 8 bits take half the bytes; as much is computed, and sent") {
  const std::string head = "name,weight_gb,layers,hidden,heads,kv_heads,head_dim,source";
  const auto read = [&](const std::string& columns, const std::string& weights,
                        const std::string& bits) {
    std::istringstream in{head + columns + "\nM," + weights + ",32,4096,32,8,128,x" + bits + "\n"};
    return cost_model{read_models(in).front()};
  };
  const auto half = read("", "16", ""), both = read(",weight_bits,kv_bits", "8", ",8,8"),
             kv = read(",kv_bits", "16", ",8"), empty = read(",weight_bits", "16", ",");
  CHECK(both.model().parameters() == half.model().parameters());
  CHECK(both.model().kv_bytes_per_token() == half.model().kv_bytes_per_token() / 2);
  CHECK(both.model().wire_bytes_per_row() == half.model().wire_bytes_per_row());
  CHECK(empty.model_s(of(1, "H20"), 7) == half.model_s(of(1, "H20"), 7));
  const auto h20 = of(1, "H20");
  // Half to read for one row, as much to compute for many.
  CHECK(both.model_s(h20, 1) < 0.65 * half.model_s(h20, 1));
  CHECK(both.model_s(h20, 20'000) == doctest::Approx(half.model_s(h20, 20'000)).epsilon(0.01));
  CHECK(kv.attention_s(h20, 32, 1e6) < 0.51 * half.attention_s(h20, 32, 1e6));
  CHECK(both.kv_tokens(h20, both.model().weight_bytes)
        > 2 * half.kv_tokens(h20, half.model().weight_bytes));
  for (const char* bad : {",0", ",64", ",x"})
    CHECK_THROWS_AS(read(",weight_bits", "16", bad), table_error);
}

TEST_CASE("L-M05 a cache of fewer bits is sent the same K and V, which it rounds when they come") {
  constants slow;
  slow.fhbn_efficiency = 0.01;
  std::vector<double> tokens_per_s, hidden;
  for (const double bits : {16, 8, 4}) {
    auto shape = *find_model(built_in_models(), "LLaMA3-8B");
    shape.kv_element_bytes = bits / 8;
    const cost_model cost{shape, slow};
    decode_design d;
    d.compute = of(1, "H100-SXM");
    d.memory = of(8, "H20");
    d.batches = 1;
    d.prefill_beside = true;
    tokens_per_s.push_back(simulate(d, cost, uniform_trace(300, 2000, 20, 1)).tokens_per_s);
    // Nothing but K and V is sent while a memory device that has much to read attends.
    const auto path = cost.path(d.network, d.compute, d.memory);
    hidden.push_back(cost.overlap_s(d.compute, d.memory, path, 64, 1e9));
  }
  CHECK(tokens_per_s[0] == doctest::Approx(34).epsilon(0.1));
  for (const size_t i : {1, 2}) {
    CHECK(tokens_per_s[i] == doctest::Approx(tokens_per_s[0]).epsilon(0.02));
    CHECK(hidden[i] == doctest::Approx(hidden[0]));
  }
}
