/// Simulates the best designs, ranks them, and says what follows.
#include "scheduler/planner/planner.hpp"

#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

namespace lamella::scheduler {

namespace {

/// Something else than memory keeps its batch from being larger.
void bound_by(plan_row& row, const std::string& what) {
  row.bound = what + row.bound.substr(std::min(row.bound.find(';'), row.bound.size()));
}

const char* name_of(latency_metric m) {
  return m == latency_metric::tbt ? "TBT" : m == latency_metric::ttft ? "TTFT" : "E2E";
}

} // namespace

limit_miss worst_miss(const distribution& tbt, const distribution& ttft, const distribution& e2e,
                      const std::vector<latency_limit>& limits) {
  limit_miss worst;
  for (const auto& x : limits) {
    const auto& d = x.metric == latency_metric::tbt    ? tbt
                    : x.metric == latency_metric::ttft ? ttft
                                                       : e2e;
    const auto is = d.quantile(x.quantile);
    if (!(is > x.limit_s) || is / x.limit_s <= worst.factor) continue;
    worst = {is / x.limit_s, x.metric,
             std::string{name_of(x.metric)} + " P" + fixed(100 * x.quantile, 0) + " "
                 + brief(is * 1e3) + " ms, limit " + brief(x.limit_s * 1e3) + " ms"};
  }
  return worst;
}

void check_budget(plan_row& row, const plan_question& q) {
  if (!row.ok()) return;
  if (q.usd_per_hour_max > 0 && row.usd_per_hour() > q.usd_per_hour_max) {
    row.misses =
        "$" + fixed(row.usd_per_hour(), 2) + " per hour, limit $" + fixed(q.usd_per_hour_max, 2);
    row.miss = row.usd_per_hour() / q.usd_per_hour_max;
  }
  if (q.watts_max > 0 && row.watts() > std::max(1.0, row.miss) * q.watts_max) {
    row.misses = fixed(row.watts(), 0) + " W, limit " + fixed(q.watts_max, 0) + " W";
    row.miss = row.watts() / q.watts_max;
  }
}

uint32_t copies_within(const plan_question& q, const decode_design& design) {
  if (q.objective != plan_objective::throughput || q.rate > 0) return 1;
  double most = INFINITY;
  if (q.usd_per_hour_max > 0) most = q.usd_per_hour_max / design.usd_per_hour();
  if (q.watts_max > 0) most = std::min(most, q.watts_max / design.watts());
  // A price of 2.35 fits a budget of 7.05 three times, whatever binary fractions say.
  return most < 1e6 ? static_cast<uint32_t>(std::max(1.0, std::floor(most + 1e-9))) : 1;
}

namespace {

/// Runs the trace over the row's design: throughput, latencies and copies of the row. Returns how
/// many requests can never fit.
uint64_t simulate_row(plan_row& row, const plan_question& q, const cost_model& cost,
                      const request_trace& trace, uint32_t copies_least) {
  simulation_options full;
  full.seats_per_batch = row.seats;
  auto r = simulate(row.design, cost, trace, full);
  row.simulated = true;
  row.tokens_per_s = r.tokens_per_s;
  row.batch = r.mean_batch;
  row.tbt = r.tbt;
  if (q.rate > 0) {
    const auto needed = static_cast<uint32_t>(
        std::clamp(std::ceil(q.rate * workload_of(trace).output / r.tokens_per_s), 1.0, 1e6));
    row.copies = std::max(needed, copies_least);
    simulation_options load = full;
    load.load = load_kind::arrivals;
    r = simulate(row.design, cost, with_arrivals(trace, q.rate / row.copies, 1), load);
    row.tbt = r.tbt;
    row.ttft = r.ttft;
    row.e2e = r.e2e;
  } else {
    row.copies = copies_within(q, row.design);
  }
  return r.never_fit;
}

/// Gives up seats for the limit of the time between tokens, adds copies for others; false when
/// there is no seat to give up.
bool ease(plan_row& row, const limit_miss& worst) {
  if (worst.metric == latency_metric::tbt) {
    const double batches = row.design.concurrent();
    const auto seats = std::floor(std::min<double>(row.seats, row.batch / batches)
                                  / std::min(2.0, worst.factor * 1.02));
    if (seats < 1) return false;
    row.seats = static_cast<uint32_t>(seats);
    bound_by(row, "TBT limit");
  } else {
    row.copies += std::max(1u, row.copies / 10);
    bound_by(row, std::string{name_of(worst.metric)} + " limit");
  }
  return true;
}

} // namespace

plan_row evaluate(const plan_row& guess, const plan_question& q, const cost_model& cost,
                  const request_trace& trace) {
  auto row = guess;
  const auto w = workload_of(trace);
  // What the guess was bound by may have been another trace's; seats and prompts stay.
  if (!row.bound.starts_with("TBT") && !row.bound.starts_with("prompts")) {
    const auto holds = estimate(row.design, {}, cost, w).batch;
    bound_by(row,
             holds > static_cast<double>(trace.size()) ? "requests of the trace" : "KV memory");
  }
  for (int attempt = 0;; ++attempt) {
    uint64_t never_fit = 0;
    try {
      never_fit = simulate_row(row, q, cost, trace, attempt > 0 ? row.copies : 1u);
    } catch (const std::invalid_argument& e) {
      row.misses = e.what();
      row.miss = INFINITY;
      return row;
    }
    const auto worst = worst_miss(row.tbt, row.ttft, row.e2e, q.limits);
    row.misses = never_fit * 100 > trace.size()
                     ? std::to_string(never_fit) + " requests are longer than its KV cache"
                     : worst.text;
    row.miss = row.ok() ? 0 : worst.text.empty() ? INFINITY : worst.factor;
    // Seats cost throughput, copies cost money; a few steps are enough near the limit.
    if (worst.text.empty() || attempt == 4 || !ease(row, worst)) break;
  }
  check_shared_nics(row, q, cost, w);
  row.usd_per_mtok = row.design.usd_per_hour() / 3600 / row.tokens_per_s * 1e6;
  row.joules_per_token = row.design.watts() / row.tokens_per_s;
  if (q.rate > 0) { // what is paid for is what was asked for
    const auto served = q.rate * w.output;
    row.usd_per_mtok = row.usd_per_hour() / 3600 / served * 1e6;
    row.joules_per_token = row.watts() / served;
  }
  check_budget(row, q);
  return row;
}

std::vector<plan_row> best_of_nics(const std::vector<plan_row>& ranked) {
  std::vector<plan_row> best;
  std::set<std::string> seen;
  for (const auto& row : ranked) {
    auto own = row.design;
    own.compute.nics = own.memory.nics = 0;
    if (seen.insert(describe(own)).second) best.push_back(row);
  }
  return best;
}

void rank(std::vector<plan_row>& rows, const plan_question& q) {
  const auto worth = [&](const plan_row& r) {
    switch (q.objective) {
    case plan_objective::power:
      return r.joules_per_token;
    case plan_objective::throughput:
      return -r.tokens_per_s * r.copies;
    case plan_objective::cost:
      break;
    }
    return r.usd_per_mtok;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const plan_row& a, const plan_row& b) {
    const auto key = [&](const plan_row& r) {
      return std::tuple{!r.ok(), r.ok() ? 0.0 : r.miss, worth(r)};
    };
    return key(a) < key(b);
  });
}

std::string verdict(const std::vector<plan_row>& rows, const plan_question& q) {
  if (rows.empty()) return "No design of this menu can hold the model.";
  if (!rows.front().ok())
    return "No design keeps all limits. The nearest is " + describe(rows.front().design) + ": "
           + rows.front().misses + ".";
  const std::string only = q.limited() ? " is the only kind that keeps the limits."
                                       : " is the only kind that holds the model.";
  const plan_row *same = nullptr, *split = nullptr;
  for (const auto& r : rows) {
    if (!r.ok()) continue;
    auto& best = r.design.disaggregated() ? split : same;
    if (best == nullptr) best = &r;
  }
  const auto of = [&](const plan_row& r) {
    return q.objective == plan_objective::power        ? r.joules_per_token
           : q.objective == plan_objective::throughput ? 1 / (r.tokens_per_s * r.copies)
                                                       : r.usd_per_mtok;
  };
  const char* unit = q.objective == plan_objective::power        ? "less power per token"
                     : q.objective == plan_objective::throughput ? "more tokens per second"
                                                                 : "less money per token";
  const std::string verb = q.objective == plan_objective::throughput ? " gives " : " needs ";
  const auto& best = rows.front();
  const auto* other = best.design.disaggregated() ? same : split;
  const auto gain = [&](const plan_row& r) {
    return q.objective == plan_objective::throughput ? 100 * (of(r) / of(best) - 1)
                                                     : 100 * (1 - of(best) / of(r));
  };
  const auto compared = [&](const plan_row& r) {
    return (gain(r) < 0.5 ? " is as good as " : verb + fixed(gain(r), 0) + " % " + unit + " than ")
           + describe(r.design);
  };
  if (!best.design.disaggregated())
    return "Do not disaggregate: " + describe(best.design)
           + (other == nullptr ? only : compared(*other) + ", the best disaggregated design.");
  return "Disaggregate: " + describe(best.design)
         + (other == nullptr ? only : compared(*other) + ", the best homogeneous design.");
}

std::string frontier_svg(const std::vector<plan_row>& rows) {
  std::vector<const plan_row*> shown;
  double x_max = 0, y_max = 0;
  for (const auto& r : rows)
    if (r.usd_per_mtok > 0 && std::isfinite(r.usd_per_mtok) && r.tbt.count() > 0)
      shown.push_back(&r);
  if (shown.empty()) return {};
  std::sort(shown.begin(), shown.end(),
            [](auto* a, auto* b) { return a->tbt.mean() < b->tbt.mean(); });
  // The cheapest decile tells the scale; designs that cost ten times as much would hide the rest.
  std::vector<double> prices;
  for (const auto* r : shown)
    prices.push_back(r->usd_per_mtok), x_max = std::max(x_max, r->tbt.mean());
  std::sort(prices.begin(), prices.end());
  y_max = std::min(prices.back(), 6 * prices[prices.size() / 10]);
  constexpr double left = 70, top = 40, wide = 640, high = 380;
  const auto x = [&](const plan_row& r) { return fixed(left + wide * r.tbt.mean() / x_max, 1); };
  const auto y = [&](const plan_row& r) {
    return fixed(top + high * (1 - std::min(1.0, r.usd_per_mtok / y_max)), 1);
  };
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"480\" "
                     "font-family=\"sans-serif\" font-size=\"13\">\n<text x=\"70\" y=\"24\" "
                     "font-weight=\"bold\">Price over time between tokens: homogeneous (orange), "
                     "disaggregated (blue), frontier</text>\n";
  std::string line;
  double best = 1e300;
  for (const auto* r : shown) {
    text += "<circle cx=\"" + x(*r) + "\" cy=\"" + y(*r) + "\" r=\"" + (r->simulated ? "5" : "2.5")
            + "\" fill=\"" + (r->design.disaggregated() ? "#4878a8" : "#d08030") + "\"><title>"
            + escaped(describe(r->design)) + ": " + fixed(r->tbt.mean() * 1e3, 1) + " ms, $"
            + fixed(r->usd_per_mtok, 3) + "/Mtok</title></circle>\n";
    if (r->usd_per_mtok >= best || r->usd_per_mtok > y_max) continue;
    best = r->usd_per_mtok;
    line += x(*r) + "," + y(*r) + " ";
  }
  text += "<polyline fill=\"none\" stroke=\"#444\" points=\"" + line + "\"/>\n";
  text += "<text x=\"70\" y=\"450\">0</text><text x=\"710\" y=\"450\" text-anchor=\"end\">"
          + fixed(x_max * 1e3, 0)
          + " ms mean TBT</text><text x=\"64\" y=\"420\" "
            "text-anchor=\"end\">0</text><text x=\"64\" y=\"52\" text-anchor=\"end\">$"
          + fixed(y_max, 2)
          + "</text>\n<rect x=\"70\" y=\"40\" width=\"640\" height=\"380\" "
            "fill=\"none\" stroke=\"#888\"/>\n";
  return text + "</svg>\n";
}

} // namespace lamella::scheduler
