// Closed forms of the cost models, at the papers' own points.
#include "scheduler/planner/cost/cost.hpp"
#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/planner/decode_design.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include <sstream>

using namespace lamella::scheduler;

namespace {

const device& gpu(const char* name) {
  const auto* d = find_device(built_in_devices(), name);
  REQUIRE(d != nullptr);
  return *d;
}

const model_shape& shape(const char* name) {
  const auto* m = find_model(built_in_models(), name);
  REQUIRE(m != nullptr);
  return *m;
}

} // namespace

TEST_CASE("L-M01 the intensity of the linear operators is 2NB over e (N + 2Bd)") {
  const cost_model cost{shape("LLaMA3-70B")};
  const double n = 137.5e9 / 2, d = 8192;
  for (const double rows : {1.0, 7.0, 295.0, 1024.0})
    CHECK(cost.intensity(rows) == doctest::Approx(2 * n * rows / (2 * (n + 2 * rows * d))));
  // Where reading and computing take the same time, B = e peak / (2 bw) = 295 on an H100.
  const auto& h100 = gpu("H100-SXM");
  CHECK(2 * h100.flops / (2 * h100.bandwidth) == doctest::Approx(295).epsilon(0.01));
}

TEST_CASE("L-Q23 below 100 rows an H100 computes at less than a fifth of its peak, after it more") {
  const cost_model cost{shape("LLaMA3-70B")};
  const device_group one{gpu("H100-SXM"), 1};
  const auto mfu = [&](double rows) {
    return 2 * cost.model().parameters() * rows / cost.model_s(one, rows) / one.kind.flops;
  };
  CHECK(mfu(64) < 0.20);
  CHECK(mfu(100) < 0.32);
  CHECK(mfu(512) > 0.5);
  for (double rows = 1; rows < 2000; rows *= 1.5) CHECK(mfu(rows * 1.5) > mfu(rows));
}

TEST_CASE("the linear operators cost what was measured: Llama-2-70B layers on H100, within 15 %") {
  // Vidur's medians per layer, projections and elementwise operators together, in us.
  struct point {
    uint32_t tp;
    double rows, us;
  };
  const cost_model cost{shape("LLaMA2-70B")};
  for (const auto& [tp, rows, us] : {point{1, 1, 625},
                                     {1, 64, 633},
                                     {1, 256, 764},
                                     {1, 512, 1256},
                                     {1, 4096, 10859},
                                     {2, 1, 319},
                                     {2, 256, 408},
                                     {2, 512, 709},
                                     {4, 1, 179},
                                     {4, 128, 199},
                                     {4, 512, 375},
                                     {8, 1, 104},
                                     {8, 256, 144},
                                     {8, 1024, 408}}) {
    CAPTURE(tp);
    CAPTURE(rows);
    const auto ours = cost.model_s({gpu("H100-SXM"), tp}, rows) / 80 * 1e6;
    CHECK(ours == doctest::Approx(us).epsilon(0.15));
  }
}

TEST_CASE("L-M02 attention is linear in the context of all requests together, however divided") {
  const cost_model cost{shape("LLaMA-65B")};
  const device_group four{gpu("H20"), 4};
  const auto at = [&](double rows, double context) {
    return cost.attention_s(four, rows, context);
  };
  const auto start = at(1, 1);
  CHECK(at(1, 200'000) == at(54, 200'000));
  CHECK(at(1, 200'000) - start == doctest::Approx(2 * (at(1, 100'000) - start)).epsilon(1e-4));
  CHECK(at(0, 0) == 0);
}

TEST_CASE("L-M05 L-Q05 sizes of the three models of table 3") {
  CHECK(shape("LLaMA-33B").kv_bytes_per_token() == 1'597'440);
  CHECK(shape("LLaMA-65B").kv_bytes_per_token() == 2'621'440);
  CHECK(shape("LLaMA3-70B").kv_bytes_per_token() == 327'680);
  CHECK(shape("LLaMA-13B").kv_bytes_per_token() == 819'200);
  const auto& m = shape("LLaMA3-70B");
  CHECK(m.wire_bytes_per_row() == doctest::Approx((2 + 2.0 / 8) * 2 * 8192 * 80));
  // L-Q26: the whole memory of an H100 holds about 30 requests of 8192 tokens.
  CHECK(80e9 / m.kv_bytes_per_token() / 8192 == doctest::Approx(30).epsilon(0.02));
}

TEST_CASE("L-M04 L-Q28 C11 30 GB/s per NIC are enough up to 300 requests at (2,2) and (4,4)") {
  for (const uint32_t dop : {2u, 4u})
    for (const char* model : {"LLaMA-65B", "LLaMA3-70B"}) {
      const cost_model cost{shape(model)};
      const device_group compute{gpu("H100-SXM"), dop}, memory{gpu("H20"), dop};
      for (const double rows : {10.0, 50.0, 100.0, 200.0, 300.0})
        for (const double length : {4096.0, 8192.0}) {
          const auto m = cost.model_s(compute, rows),
                     a = cost.attention_s(memory, rows, rows * length);
          const auto all = cost.bandwidth_needed(rows, m, a);
          CHECK(all == doctest::Approx(cost.model().wire_bytes_per_row() * rows / (0.2 * (m + a))));
          CAPTURE(model);
          CAPTURE(rows);
          CHECK(all / dop < 30e9);
        }
    }
}

TEST_CASE("L-M06 L-M07 the weaker side's NICs decide, and the host-driven path is slower") {
  const cost_model cost{shape("LLaMA-65B")};
  const device_group two{gpu("H100-SXM"), 2}, four{gpu("H20"), 4};
  const auto fhbn = cost.path(network_kind::fhbn, two, four);
  CHECK(fhbn.bandwidth == doctest::Approx(2 * 45.7e9));
  CHECK(cost.path(network_kind::fhbn, four, two).bandwidth == fhbn.bandwidth);
  const auto host = cost.path(network_kind::host, two, four);
  CHECK(host.bandwidth == doctest::Approx(2 * 35.5e9));
  CHECK(cost.network_s(host, 1) > 2 * cost.network_s(fhbn, 1));
}

TEST_CASE("L-M06 devices may share NICs or have several, and pay for what they have") {
  constants c;
  const cost_model cost{shape("LLaMA-65B"), c};
  const device_group two{gpu("H100-SXM"), 2}, four{gpu("H20"), 4};
  const auto shared = with_nics(four, 1, c);
  const auto path = cost.path(network_kind::fhbn, two, shared);
  CHECK(path.bandwidth == doctest::Approx(45.7e9));
  CHECK(path.one == doctest::Approx(2 * 45.7e9));
  CHECK(cost.network_s(path, 100) > cost.network_s(cost.path(network_kind::fhbn, two, four), 100));
  CHECK(shared.usd_per_hour() == doctest::Approx(4 * 4.63 - 3 * c.nic_price_share * 4.63));
  CHECK(shared.watts() == doctest::Approx(4 * 400 - 3 * c.nic_watts));
  // Its slot takes what one NIC of 400 Gb/s brings, and no more; eight of 25 Gb/s it takes.
  CHECK(nic_bandwidth(with_nics(two, 4, c), c) == nic_bandwidth(two, c));
  const device_group small{gpu("A10G"), 1};
  CHECK(nic_bandwidth(with_nics(small, 4, c), c) == doctest::Approx(4 * nic_bandwidth(small, c)));
  CHECK(nic_bandwidth(with_nics(small, 16, c), c) == doctest::Approx(25e9));
  CHECK(with_nics(small, 4, c).watts() == doctest::Approx(150 + 3 * c.nic_watts));
  // As many as the table has in its prices change neither price nor power.
  CHECK(with_nics(four, 4, c).usd_per_hour() == four.usd_per_hour());
  CHECK(with_nics(four, 4, c).watts() == four.watts());
}

TEST_CASE("L-Q38 L-Q39 sending Q early saves up to 13.2 % on 65B and 3.5 % on 70B, each within 2") {
  const auto best = [](const char* model, uint32_t memory) {
    const cost_model cost{shape(model)};
    decode_design with;
    with.compute = {gpu("H100-SXM"), 2};
    with.memory = {gpu("H20"), memory};
    with.batches = 1;
    auto without = with;
    without.overlap = false;
    double most = 0, last = 0;
    const auto fits = slots_per_pool(with, cost) / 4096;
    for (double rows = 1; rows <= fits; rows += 1) {
      const auto a = times_of(with, cost, rows, rows * 4096).alone(),
                 b = times_of(without, cost, rows, rows * 4096).alone();
      last = 100 * (b - a) / b;
      CHECK(last >= 0);
      most = std::max(most, last);
    }
    MESSAGE(std::string{model}, ": up to ", most, " %");
    return most;
  };
  CHECK(best("LLaMA-65B", 2) == doctest::Approx(13.2).epsilon(2.0 / 13.2));
  CHECK(best("LLaMA3-70B", 4) == doctest::Approx(3.5).epsilon(2.0 / 3.5));
}

TEST_CASE("L-M24 C02 memory devices must divide the KV heads; by request they need not") {
  const cost_model cost{shape("LLaMA3-70B")};
  decode_design design;
  design.compute = {gpu("H100-SXM"), 2};
  design.memory = {gpu("H20"), 6};
  const auto why = refuse(design, cost);
  REQUIRE(why);
  CHECK(why->find("8 KV heads") != std::string::npos);
  CHECK(why->find("6") != std::string::npos);
  design.partition = partition_kind::requests;
  CHECK_FALSE(refuse(design, cost));
}

TEST_CASE("designs that cannot hold the model are refused with both sizes") {
  const cost_model cost{shape("LLaMA3-70B")};
  decode_design design;
  design.compute = {gpu("H100-SXM"), 1};
  design.memory = {gpu("H20"), 4};
  const auto why = refuse(design, cost);
  REQUIRE(why);
  CHECK(why->find("137.5 GB") != std::string::npos);
  CHECK(why->find("70.0 GB") != std::string::npos);
}

TEST_CASE("tables of devices say which line is wrong") {
  const auto message = [](const std::string& text) -> std::string {
    std::istringstream in{text};
    try {
      read_devices(in);
    } catch (const table_error& e) {
      return e.what();
    }
    return "";
  };
  const std::string head =
      "name,kind,bf16_dense_tflops,mem_gb,mem_bw_gbs,tdp_w,nic_gbps,usd_per_hr,"
      "usd_purchase,source\n";
  const std::string good = "A,gpu,100,24,900,300,100,1.5,,me\n";
  CHECK(message(head + good) == "");
  CHECK(message("").find("empty") != std::string::npos);
  CHECK(message(head).find("names no device") != std::string::npos);
  CHECK(message(head + good + good).find("line 3: 'A' is given twice") == 0);
  CHECK(message(head + good + "B,gpu,x,24,900,300,100,1.5,,me\n").find("line 3: bf16_dense_tflops")
        == 0);
  CHECK(message(head + "B,gpu,-1,24,900,300,100,1.5,,me\n").find("not within")
        != std::string::npos);
  CHECK(message(head + "B,gpu,nan,24,900,300,100,1.5,,me\n") != "");
  CHECK(message(head + "B,gpu,1,24\n").find("line 2: 4 fields") == 0);
  CHECK(message("name,kind\nA,gpu\n").find("'bf16_dense_tflops'") != std::string::npos);
}

TEST_CASE(
    "constants are at most what they are a share of, and not nothing where something is divided") {
  const constants c;
  for (const auto& row : constant_rows) {
    CAPTURE(row.name);
    const auto range = range_of(row);
    CHECK(range.least <= c.*row.field);
    CHECK(c.*row.field <= range.most);
    if (row.unit.starts_with("share")) CHECK(range.most == 1);
    if (row.name.ends_with("efficiency") || row.name.ends_with("gbs")) CHECK(range.least > 0);
    // Set to its least it still gives times.
    auto least = c;
    least.*row.field = range.least;
    const cost_model cost{*find_model(built_in_models(), "LLaMA3-8B"), least};
    const device_group two{*find_device(built_in_devices(), "H100-SXM"), 2};
    CHECK(std::isfinite(cost.model_s(two, 100) + cost.attention_s(two, 100, 1e5)
                        + cost.all_reduce_s(two, 100)
                        + cost.network_s(cost.path(network_kind::fhbn, two, two), 100)));
  }
}
