/// Which designs there are, and what closed forms say of them.
#include "scheduler/planner/planner.hpp"

#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::scheduler {

workload workload_of(const request_trace& trace) {
  workload w;
  double tokens = 0;
  for (const auto& x : trace) {
    w.context += x.output_tokens * (x.prompt_tokens + x.output_tokens / 2.0);
    w.prompt += x.prompt_tokens;
    tokens += x.output_tokens;
  }
  const auto n = static_cast<double>(trace.size());
  w.context /= tokens;
  w.prompt /= n;
  w.output = tokens / n;
  return w;
}

namespace {

/// NICs that `count` devices may have together, fewest first.
std::vector<uint32_t> nic_counts(const device& kind, uint32_t count, const constants& c) {
  if (kind.nic_bandwidth <= 0) return {count}; // none of its own: nothing to share or to add
  std::vector<uint32_t> all;
  for (const uint32_t sharing : {4u, 2u})
    if (count % sharing == 0) all.push_back(count / sharing);
  all.push_back(count);
  for (const uint32_t each : {2u, 4u})
    if (kind.nic_bandwidth * each <= nic_link(kind, c)) all.push_back(count * each);
  return all;
}

/// The design with every number of NICs that makes sense: its own first.
std::vector<decode_design> with_all_nics(const decode_design& own, const constants& c) {
  std::vector<decode_design> all{own};
  const auto same = [](const decode_design& a, const decode_design& b) {
    return a.compute.nics == b.compute.nics && a.memory.nics == b.memory.nics;
  };
  if (!own.disaggregated()) { // nothing between its devices passes a NIC, only the KV of prompts
    auto one = own;
    if (own.compute.kind.nic_bandwidth > 0) one.compute = with_nics(own.compute, 1, c);
    if (!same(one, own)) all.push_back(one);
    return all;
  }
  const auto a = nic_counts(own.compute.kind, own.compute.count, c),
             b = nic_counts(own.memory.kind, own.memory.count, c);
  const auto bandwidth = [&](const device_group& group, uint32_t nics) {
    return nic_bandwidth(with_nics(group, nics, c), c);
  };
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k) {
      auto d = own;
      d.compute = with_nics(own.compute, a[i], c);
      d.memory = with_nics(own.memory, b[k], c);
      // One NIC less on this side would still feed all that the other side has.
      if (i > 0 && bandwidth(own.compute, a[i - 1]) >= bandwidth(own.memory, b[k])) continue;
      if (k > 0 && bandwidth(own.memory, b[k - 1]) >= own.groups() * bandwidth(own.compute, a[i]))
        continue;
      if (!same(d, own)) all.push_back(d);
    }
  return all;
}

} // namespace

std::vector<decode_design> enumerate_designs(const plan_question& q, const cost_model& cost) {
  std::vector<decode_design> all;
  const auto keep = [&](decode_design d) {
    d.prefill = q.prefill;
    d.prefill_servers = q.prefill_servers;
    d.prefill_beside = q.prefill_beside;
    if (d.devices() > q.devices_max || refuse(d, cost)) return;
    for (auto& x : with_all_nics(d, cost.values())) all.push_back(std::move(x));
  };
  for (const auto& compute : q.menu)
    for (const uint32_t a : {1u, 2u, 4u, 8u}) {
      decode_design same;
      same.compute = {compute, a};
      same.block_slots = same.window_slots = 16;
      same.host = q.host;
      for (uint32_t stages = 1; stages <= q.stages_max; stages *= 2) {
        same.stages = stages;
        keep(same);
      }
      for (const auto& memory : q.menu)
        for (uint32_t n = 1; n <= q.batches_max; ++n)
          for (uint32_t b = 1; b < q.devices_max; ++b)
            for (const auto partition : {partition_kind::heads, partition_kind::requests}) {
              // By request only where heads cannot be divided (C01).
              if (partition == partition_kind::requests && cost.model().kv_heads % b == 0) continue;
              decode_design d;
              d.compute = {compute, a};
              d.memory = {memory, b};
              d.batches = n;
              d.replicas = std::max(1u, n - 1);
              d.partition = partition;
              d.host = q.host;
              keep(d);
              // One replica in as many stages as there are batches beside the one at attention.
              d.stages = d.replicas;
              d.replicas = 1;
              if (d.stages > 1 && d.stages <= q.stages_max) keep(d);
            }
    }
  return all;
}

namespace {

/// Time of an iteration when `rows` requests are spread evenly over the batches.
double tbt_of(const decode_design& d, const cost_model& cost, double rows, double context,
              double prompt_share, iteration_times* one = nullptr) {
  const double batches = d.concurrent();
  auto t = times_of(d, cost, rows / batches, rows / batches * context);
  if (d.prefill_beside && prompt_share > 0) {
    // In each iteration as much of prompts as its requests need to be replaced by others.
    const auto wanted =
        std::clamp(rows / batches * prompt_share, 1.0, static_cast<double>(d.chunk_tokens));
    const prefill_piece piece{{}, 0, static_cast<uint32_t>(wanted), false};
    t = times_with_prompts(d, cost, rows / batches, rows / batches * context, 0, {&piece, 1});
  }
  if (one != nullptr) *one = t;
  const bool split = d.disaggregated();
  const std::vector<iteration_times> all(split ? d.batches : d.stages, t);
  return iteration_s(all, 0, split ? d.replicas : 1, split ? d.pipeline : pipeline_kind::fixed);
}

/// Prompt tokens that the design can compute in a second; no limit where prompts come with KV.
double prompt_tokens_per_s(const decode_design& d, const cost_model& cost, const workload& w,
                           double tbt) {
  if (d.prefill_servers > 0)
    return d.prefill_servers * w.prompt / cost.prefill_s(d.prefill, w.prompt);
  if (d.prefill_beside) return static_cast<double>(d.chunk_tokens) * d.concurrent() / tbt;
  return INFINITY;
}

double tbt_limit(const plan_question& q) {
  double limit = 1e300;
  for (const auto& x : q.limits)
    if (x.metric == latency_metric::tbt) limit = std::min(limit, x.limit_s);
  return limit;
}

std::string bound_of(const decode_design& d, const cost_model& cost, const iteration_times& t,
                     double tbt, bool by_tbt) {
  std::string text = by_tbt ? "TBT limit" : "KV memory";
  if (!d.disaggregated())
    return text + "; model " + std::to_string(std::lround(100 * t.busiest() * d.stages / tbt))
           + " %";
  const auto model = t.busiest() * d.batches / d.replicas / tbt,
             attention = t.attention * d.batches / tbt;
  if (model > 0.97) return text + "; compute devices full";
  if (attention > 0.97) return text + "; memory devices full";
  const auto path = cost.path(d.network, d.compute, d.memory);
  const bool compute_side = path.one < path.other;
  const auto& g = compute_side ? d.compute : d.memory;
  const auto nics = g.nics > 0 ? g.nics : g.count;
  const auto named = "network, " + std::to_string(nics) + (nics == 1 ? " NIC" : " NICs") + " of "
                     + std::to_string(g.count) + " x " + g.kind.name;
  if (std::max(t.compute_nics / d.replicas, t.memory_nics) * d.batches / tbt > 0.97)
    return text + "; " + named + " full";
  if (t.network <= t.attention) return text + "; one step after the other";
  const auto trips = cost.model().layers * path.round_trip_s;
  return text + "; " + (trips > t.network / 2 ? "network, round trips" : named);
}

} // namespace

void check_shared_nics(plan_row& row, const plan_question& q, const cost_model& cost,
                       const workload& w) {
  const auto& d = row.design;
  const auto& keeps = d.disaggregated() ? d.memory : d.compute;
  if (keeps.more_nics() >= 0 || !row.ok()) return;
  const auto requests_per_s = q.rate > 0 ? q.rate / row.copies : row.tokens_per_s / w.output;
  const auto comes = requests_per_s * w.prompt * cost.model().kv_bytes_per_token();
  auto takes = nic_bandwidth(keeps, cost.values());
  if (!d.disaggregated()) takes *= d.groups();
  if (comes <= takes) return;
  row.misses = "the KV of prompts arrives at " + brief(comes / 1e9) + " GB/s, its NICs accept "
               + brief(takes / 1e9) + " GB/s";
  row.miss = comes / takes;
}

plan_row estimate(const decode_design& design, const plan_question& q, const cost_model& cost,
                  const workload& w) {
  plan_row row;
  row.design = design;
  const double batches = design.concurrent();
  const auto slots = slots_per_pool(design, cost) * design.pools() * (1 - design.kept_free_share);
  // A request holds half a window more than it uses, on average.
  const auto fits = std::floor(slots / (w.context + design.window_slots / 2.0));
  const auto limit = tbt_limit(q);
  const auto share = w.prompt / w.output;
  double rows = std::max(1.0, fits);
  const bool by_tbt = tbt_of(design, cost, rows, w.context, share) > limit;
  if (by_tbt) {
    double low = 1, high = rows;
    while (high - low > 0.5) {
      const auto middle = (low + high) / 2;
      (tbt_of(design, cost, middle, w.context, share) <= limit ? low : high) = middle;
    }
    rows = std::floor(low);
  }
  iteration_times t;
  const auto tbt = tbt_of(design, cost, rows, w.context, share, &t);
  row.seats = by_tbt ? static_cast<uint32_t>(std::max(1.0, std::ceil(rows / batches))) : 65'536;
  row.batch = rows;
  row.tokens_per_s = rows / tbt;
  row.tbt.add(tbt);
  const auto prompts = prompt_tokens_per_s(design, cost, w, tbt);
  const bool by_prompts = prompts < row.tokens_per_s * share;
  if (by_prompts) row.tokens_per_s = prompts / share;
  row.bound = by_prompts ? "prompts" : bound_of(design, cost, t, tbt, by_tbt);
  if (fits < 1) {
    row.misses = "one request of average length does not fit";
    row.miss = INFINITY;
  }
  if (tbt > limit && row.ok()) row.miss = tbt / limit;
  if (tbt > limit && row.ok())
    row.misses =
        "TBT " + brief(tbt * 1e3) + " ms even for one request, limit " + brief(limit * 1e3) + " ms";
  row.copies = copies_within(q, design);
  if (q.rate > 0)
    row.copies = static_cast<uint32_t>(
        std::clamp(std::ceil(q.rate * w.output / row.tokens_per_s), 1.0, 1e6));
  check_shared_nics(row, q, cost, w);
  row.usd_per_mtok = design.usd_per_hour() / 3600 / row.tokens_per_s * 1e6;
  row.joules_per_token = design.watts() / row.tokens_per_s;
  if (q.rate > 0) { // what is paid for is what was asked for
    const auto served = q.rate * w.output;
    row.usd_per_mtok = row.usd_per_hour() / 3600 / served * 1e6;
    row.joules_per_token = row.watts() / served;
  }
  check_budget(row, q);
  return row;
}

std::vector<sensitivity> sensitivities(const plan_row& row, const plan_question& q,
                                       const cost_model& cost, const workload& w) {
  auto full = q;
  full.rate = 0; // copies come in whole numbers and would hide the rest
  const auto of = [&](const plan_row& r) {
    return q.objective == plan_objective::power        ? r.joules_per_token
           : q.objective == plan_objective::throughput ? 1 / r.tokens_per_s
                                                       : r.usd_per_mtok;
  };
  const auto before = of(estimate(row.design, full, cost, w));
  std::vector<sensitivity> all;
  for (const auto& x : constant_rows) {
    if (x.kind == constant_kind::measured) continue;
    auto changed = cost.values();
    const auto from = changed.*x.field, to = std::min(range_of(x).most, from * 1.2);
    changed.*x.field = to;
    auto question = full;
    if (x.name == "host_iteration_ms") question.host.iteration_s *= 1.2;
    if (x.name == "host_request_us") question.host.request_s *= 1.2;
    auto design = row.design;
    design.host = question.host;
    for (auto* group : {&design.compute, &design.memory})
      if (group->nics > 0) *group = with_nics(*group, group->nics, changed);
    const cost_model other{cost.model(), changed};
    if (auto why = refuse(design, other)) {
      all.push_back({std::string{x.name}, from, to, INFINITY, std::move(*why)});
      continue;
    }
    const auto after = of(estimate(design, question, other, w));
    if (std::abs(after / before - 1) > 1e-4)
      all.push_back({std::string{x.name}, from, to, 100 * (after / before - 1), {}});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::abs(a.percent) > std::abs(b.percent);
  });
  return all;
}

} // namespace lamella::scheduler
