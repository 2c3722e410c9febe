/// Lamina v1: A100-40G devices, some of them used as memory devices and priced as consumer GPUs.
#include "scheduler/planner/papers/reproduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lamella::scheduler {

namespace {

/// Dollars for what an A100-40G gives as a memory device, at the RTX 3090's price of capacity and
/// bandwidth, whichever costs more (V-M18).
double memory_device_usd() {
  const auto &a100 = device_of("A100-40G-SXM"), &rtx = device_of("RTX-3090");
  return rtx.usd_purchase
         * std::max(a100.memory_bytes / rtx.memory_bytes, a100.bandwidth / rtx.bandwidth);
}

/// Lamina v1 table 3: bandwidth in GB/s that slows nothing down at B = 128, 256, 512, 1024.
struct published_bandwidth {
  const char* model;
  uint32_t devices;
  std::array<double, 4> at;
};
constexpr published_bandwidth table_3[] = {{"LLaMA-13B", 1, {4.90, 8.12, 9.08, 10.06}},
                                           {"LLaMA-33B", 2, {5.94, 9.31, 11.56, 12.53}},
                                           {"LLaMA-65B", 4, {7.55, 11.78, 13.92, 15.90}}};

/// The time of everything but attention as the authors measured it. Their bandwidth is
/// 4 e d B L / t (V-M02), so table 3 gives t at four batch sizes; one row costs our roofline, and
/// between two points t is linear (S-M23's way).
double measured_model_s(const cost_model& cost, const device_group& group,
                        const published_bandwidth& published, double rows) {
  const auto& m = cost.model();
  double x0 = 1, t0 = cost.model_s(group, 1) + cost.all_reduce_s(group, 1);
  if (rows <= 1) return t0;
  double x = 128;
  for (size_t i = 0; i < published.at.size(); ++i, x *= 2) {
    const auto t = 4 * m.element_bytes * m.hidden * x * m.layers / (published.at[i] * 1e9);
    if (rows <= x || i + 1 == published.at.size()) return t0 + (t - t0) * (rows - x0) / (x - x0);
    x0 = x, t0 = t;
  }
  return t0;
}

/// V-M02 with our own roofline.
double no_slowdown_bandwidth(const cost_model& cost, const device_group& group, double rows) {
  return cost.bandwidth_no_slowdown(rows,
                                    cost.model_s(group, rows) + cost.all_reduce_s(group, rows));
}

/// times_of() with the measured time for the model.
iteration_times measured_times(const decode_design& d, const cost_model& cost,
                               const published_bandwidth& published, double rows, double context) {
  auto t = times_of(d, cost, rows, rows * context);
  t.model = measured_model_s(cost, d.compute, published, rows);
  if (!d.disaggregated()) t.model += cost.attention_s(d.compute, rows, rows * context);
  t.host = 0; // is in the measurement
  return t;
}

/// Pairs of designs at one context each, with the extremes that the checked numbers are.
struct v1_cells {
  text_table table{"Cells",
                   {"model", "context", "baseline batch", "tokens/s", "ours batch", "tokens/s",
                    "with pipelining", "batch ratio", "throughput ratio", "per cost"},
                   {}};
  std::vector<std::pair<std::string, double>> bars;
  double batch_low = 1e9, batch_high = 0, speed_low = 1e9, speed_high = 0, cost_low = 1e9,
         cost_high = 0, hidden = 0, saved = 0, pipelining_low = 1e9, pipelining_high = 0;

  /// All contexts of a model.
  void add(const published_bandwidth& k, const constants& c);
  /// One of them, at which the baseline holds `b0` requests.
  void add(const published_bandwidth& k, const constants& c, const cost_model& cost,
           const decode_design& base, const decode_design& ours, double context, double b0);
};

void v1_cells::add(const published_bandwidth& k, const constants& c) {
  const cost_model cost{*find_model(built_in_models(), k.model), c};
  const device_group compute{device_of("A100-40G-SXM"), k.devices};
  const auto base = baseline_design(compute, c);
  decode_design ours;
  ours.compute = compute;
  ours.memory = {device_of("A100-40G-SXM"), 3 * k.devices};
  ours.partition = partition_kind::requests; // V-M07
  ours.overlap = false;                      // sending Q first came with the later paper (C06)
  ours.mini_batches = static_cast<uint32_t>(c.v1_mini_batches);
  for (const double context : {128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0}) {
    const auto b0 = std::floor(slots_per_pool(base, cost) / context);
    if (b0 < 1) continue; // the baseline cannot hold one request
    add(k, c, cost, base, ours, context, b0);
  }
}

void v1_cells::add(const published_bandwidth& k, const constants& c, const cost_model& cost,
                   const decode_design& base, const decode_design& ours, double context,
                   double b0) {
  const auto b1 = std::floor(slots_per_pool(ours, cost) / context) * ours.memory.count;
  const auto x0 = b0 / measured_times(base, cost, k, b0, context).alone();
  const auto t = measured_times(ours, cost, k, b1, context);
  const auto half = measured_times(ours, cost, k, b1 / 2, context);
  const iteration_times both[] = {half, half};
  const auto x1 = b1 / t.alone(), x2 = b1 / iteration_s(both, 0, 1, pipeline_kind::rotational);
  const auto unit = memory_device_usd(), a100 = device_of("A100-40G-SXM").usd_purchase;
  const auto price = (a100 * k.devices + unit * ours.memory.count) / (a100 * k.devices);
  const bool pipelined = b1 > c.v1_pipelined_above && x2 > x1; // V-M17
  const auto per_cost = (pipelined ? x2 : x1) / x0 / price;
  if (b1 > c.v1_pipelined_above) {
    pipelining_low = std::min(pipelining_low, x2 / x1);
    pipelining_high = std::max(pipelining_high, x2 / x1);
  }
  if (k.devices == 1) { // V-Q24 is of one computing and three memory devices
    hidden = std::max(hidden, t.hidden / t.network);
    saved = std::max(saved, t.hidden / (t.alone() + t.hidden));
  }
  batch_low = std::min(batch_low, b1 / b0), batch_high = std::max(batch_high, b1 / b0);
  speed_low = std::min(speed_low, x1 / x0), speed_high = std::max(speed_high, x1 / x0);
  cost_low = std::min(cost_low, per_cost), cost_high = std::max(cost_high, per_cost);
  table.rows.push_back({k.model, fixed(context, 0), fixed(b0, 0), fixed(x0, 0), fixed(b1, 0),
                        fixed(x1, 0), fixed(x2, 0), fixed(b1 / b0, 1), fixed(x1 / x0, 2),
                        fixed(per_cost, 2)});
  bars.emplace_back(std::string{k.model} + " at " + fixed(context, 0), per_cost);
}

std::vector<checked_number> numbers_of(const v1_cells& x) {
  std::vector<checked_number> all;
  const auto near = [](double y) { return std::pair{0.8 * y, 1.2 * y}; };
  const auto number = [&](const char* what, const char* paper, double ours, double target,
                          const char* note = "") {
    const auto [low, high] = near(target);
    all.push_back({what, paper, ours, low, high, "", note});
  };
  number("V-Q19 least throughput per cost", "1.48", x.cost_low, 1.48);
  number("V-Q19 largest throughput per cost", "12.1", x.cost_high, 12.1,
         "the cell at 2048 tokens, where the baseline holds a single request");
  number("V-Q16 least batch ratio", "10.7", x.batch_low, 10.7,
         "memory alone: 108 GB over what weights and workspace leave of 36");
  number("V-Q16 largest batch ratio", "64.0", x.batch_high, 64);
  number("V-Q17 least throughput ratio, no pipelining", "1.75", x.speed_low, 1.75,
         "follows the batch ratio above");
  number("V-Q17 largest throughput ratio, no pipelining", "20.5", x.speed_high, 20.5);
  number("V-Q18 times faster by pipelining, above 128 requests, least", "1.13", x.pipelining_low,
         1.13, "halves of the batch use what computes less well; it is left off where it loses");
  number("V-Q18 times faster by pipelining, above 128 requests, most", "1.63", x.pipelining_high,
         1.63);
  number("V-Q24 of the network's time hidden, at most, %", "62.2", 100 * x.hidden, 62.2,
         "what the number of pieces was chosen for");
  number("V-Q24 of the iteration saved by that, at most, %", "16.2", 100 * x.saved, 16.2,
         "the model part that table 3 implies is half of our iteration; our roofline has less");
  return all;
}

/// Ours beside table 3.
text_table wire_table(const constants& c) {
  text_table wire{"V-Q09 to V-Q11: bandwidth that slows nothing down, GB/s (ours / paper)",
                  {"model", "B=128", "B=256", "B=512", "B=1024"},
                  {}};
  for (const auto& p : table_3) {
    const cost_model cost{*find_model(built_in_models(), p.model), c};
    std::vector<std::string> row{p.model};
    double rows = 128;
    for (const double paper : p.at) {
      const auto ours = no_slowdown_bandwidth(cost, {device_of("A100-80G-SXM"), p.devices}, rows);
      row.push_back(fixed(ours / 1e9, 2) + " / " + fixed(paper, 2));
      rows *= 2;
    }
    wire.rows.push_back(row);
  }
  return wire;
}

} // namespace

report reproduce_lamina_v1(const constants& c) {
  report r;
  r.title = "Lamina v1: attention on cheap memory devices, per purchase cost";
  const auto unit = memory_device_usd(), a100 = device_of("A100-40G-SXM").usd_purchase;
  r.notes = {"Closed forms at full batches, with the time of the model part as table 3 of the "
             "paper implies it (its roofline would be up to twice as fast), on both sides. Three "
             "memory devices for each computing A100-40G; a memory "
             "device is an A100-40G priced by the RTX 3090's capacity and bandwidth ($"
             + fixed(unit, 0) + "), a computing one at $" + fixed(a100, 0)
             + " (C25). Batches stream to attention in " + fixed(c.v1_mini_batches, 0)
             + " pieces. Pipelining: above " + fixed(c.v1_pipelined_above, 0)
             + " requests, where it helps (V-M17)."};
  v1_cells cells;
  for (const auto& k : {table_3[0], table_3[1]}) cells.add(k, c);
  r.bars = std::move(cells.bars);
  r.bars_title = "Throughput per cost over the homogeneous design";
  r.numbers = numbers_of(cells);
  r.tables = {cells.table, wire_table(c)};
  return r;
}

} // namespace lamella::scheduler
