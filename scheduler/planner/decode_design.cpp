#include "scheduler/planner/decode_design.hpp"

#include "scheduler/head_partition.hpp"
#include "scheduler/planner/cost/stages.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lamella::scheduler {

namespace {

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes / 1e9);
  return text;
}

} // namespace

double slots_per_pool(const decode_design& design, const cost_model& cost) {
  double slots = 0;
  const auto share = fullest_stage(cost.model().layers, design.stages);
  if (!design.disaggregated())
    slots = cost.kv_tokens(design.compute, share * cost.model().weight_bytes) / share
            / cost.model().kv_copies(design.compute.count);
  else
    slots = cost.kv_tokens(design.memory, 0) / design.pools();
  slots = std::floor(slots / design.block_slots) * design.block_slots;
  return std::min(slots, 4e9); // slots are numbered with 32 bits
}

std::optional<std::string> refuse(const decode_design& design, const cost_model& cost) {
  const auto& model = cost.model();
  const auto devices = [](const device_group& g) {
    return std::to_string(g.count) + " x " + g.kind.name;
  };
  if (design.compute.count == 0 || design.replicas == 0) return "the design has no compute devices";
  if (design.prefix_cache_s > 0 && design.prefill_servers > 0)
    return "prefill servers have KV of their own, and find nothing in a prefix cache; with one, "
           "prefill runs on the decode devices, or prompts arrive with their KV";
  if (design.stages == 0 || design.stages > model.layers)
    return std::to_string(model.layers) + " layers cannot be divided over "
           + std::to_string(design.stages) + " stages";
  if (model.heads % design.compute.count != 0)
    return "the model's " + std::to_string(model.heads) + " heads cannot be spread evenly over "
           + std::to_string(design.compute.count) + " tensor-parallel devices";
  // Where attention runs beside the weights, every device has whole KV heads, or a copy of one.
  const auto few = std::min(design.compute.count, model.kv_heads),
             many = std::max(design.compute.count, model.kv_heads);
  if (!design.disaggregated() && many % few != 0)
    return "the model's " + std::to_string(model.kv_heads)
           + " KV heads cannot be spread evenly over " + std::to_string(design.compute.count)
           + " tensor-parallel devices";
  if (design.disaggregated() && design.partition == partition_kind::heads)
    if (auto why = refuse_partition(model.kv_heads, design.memory.count)) return why;
  if (design.disaggregated() && design.batches < design.replicas)
    return std::to_string(design.batches) + " batches leave some of the "
           + std::to_string(design.replicas) + " replicas without work";
  // Every stage takes a batch's turn; with fewer batches than all of them, some idle.
  if (design.disaggregated() && design.pipeline == pipeline_kind::rotational && design.batches > 1
      && (design.batches < design.replicas + 1 || design.batches > design.groups() + 1))
    return "a rotation of " + std::to_string(design.batches) + " batches needs "
           + std::to_string(design.batches - 1)
           + (design.stages > 1 ? " stages of replicas, not " : " replicas, not ")
           + std::to_string(design.groups());
  const auto usable = design.compute.memory_bytes() * cost.values().memory_utilization
                      - cost.values().workspace_gb * 1e9 * design.compute.count;
  const auto weights = model.weight_bytes * fullest_stage(model.layers, design.stages);
  if (weights > usable)
    return model.name + " needs " + gigabytes(weights) + " for its weights"
           + (design.stages > 1
                  ? " in the fullest of " + std::to_string(design.stages) + " stages, "
                  : ", ")
           + devices(design.compute) + " have " + gigabytes(std::max(0.0, usable)) + " for them";
  if (design.prefill_servers > 0) {
    const auto& p = design.prefill;
    const auto room = p.memory_bytes() * cost.values().memory_utilization
                      - cost.values().workspace_gb * 1e9 * p.count;
    if (p.count == 0 || model.heads % p.count != 0)
      return "the model's " + std::to_string(model.heads) + " heads cannot be spread evenly over "
             + std::to_string(p.count) + " devices for prompts";
    if (model.weight_bytes > room)
      return model.name + " needs " + gigabytes(model.weight_bytes) + " for its weights, "
             + devices(p) + " for prompts have " + gigabytes(std::max(0.0, room)) + " for them";
  }
  if (slots_per_pool(design, cost) < 2.0 * design.window_slots)
    return "no room for the KV cache of even one request: "
           + std::to_string(static_cast<long>(slots_per_pool(design, cost))) + " tokens";
  return std::nullopt;
}

namespace {

/// What several stages change: each is busy with its layers only, and hands its rows to the next;
/// the last one hands tokens back to the first. Between machines, as tensor parallelism is within.
void add_stages(iteration_times& t, const decode_design& design, const cost_model& cost,
                double rows) {
  if (design.stages < 2 || rows <= 0) return;
  const auto share = fullest_stage(cost.model().layers, design.stages);
  const auto kind = design.disaggregated() ? design.network : network_kind::host;
  const auto path = cost.path(kind, design.compute, design.compute);
  const auto flow = rows * cost.model().hidden * cost.model().element_bytes / path.bandwidth;
  t.network += design.stages * path.round_trip_s / 2 + (design.stages - 1) * flow;
  t.compute_nics = t.compute_nics * share + flow;
  t.stage = t.model * share;
}

/// What a rotation over several replicas sends between them: the context of each slice, in fp32
/// (L-M21). It travels while the shards attend: only what takes longer is waited for.
void add_context(iteration_times& t, const decode_design& design, const cost_model& cost,
                 double rows) {
  if (!design.disaggregated() || design.pipeline != pipeline_kind::rotational || design.replicas < 2
      || rows <= 0)
    return;
  const auto path = cost.path(design.network, design.compute, design.compute);
  const auto flow = rows * cost.model().hidden * 4 * cost.model().layers / path.one;
  t.compute_nics += flow;
  t.network += std::max(0.0, flow + cost.model().layers * path.round_trip_s / 2 - t.alone()
                                 + t.model + t.host);
}

/// The times without what several stages change.
iteration_times whole_times(const decode_design& design, const cost_model& cost, double rows,
                            double context, double busiest_context) {
  iteration_times t;
  if (rows <= 0) return t;
  const auto& group = design.compute;
  t.model = cost.model_s(group, rows) + cost.all_reduce_s(group, rows);
  t.host = design.host.of(rows);
  if (!design.disaggregated()) {
    // The same devices do both, one after the other.
    t.model += cost.attention_s(group, rows, context, cost.model().kv_copies(group.count));
    return t;
  }
  t.model += cost.slice_kernels_s();
  // All members work side by side: the fullest one decides.
  const auto read = std::max(context, busiest_context * design.memory.count);
  const auto path = cost.path(design.network, group, design.memory);
  t.attention = cost.attention_s(design.memory, rows, read);
  t.network = cost.network_s(path, rows);
  t.compute_nics = cost.nic_busy_s(path.one, rows);
  t.memory_nics = cost.nic_busy_s(path.other, rows);
  if (design.overlap) t.hidden = cost.overlap_s(group, design.memory, path, rows, context);
  // Both would hide more together (C06); the better one is what is certain.
  t.hidden = std::max(t.hidden, cost.streamed_s(path, rows, t.attention, design.mini_batches));
  return t;
}

} // namespace

iteration_times times_of(const decode_design& design, const cost_model& cost, double rows,
                         double context, double busiest_context) {
  auto t = whole_times(design, cost, rows, context, busiest_context);
  add_context(t, design, cost, rows);
  add_stages(t, design, cost, rows);
  return t;
}

iteration_times times_with_prompts(const decode_design& design, const cost_model& cost, double rows,
                                   double context, double busiest_context,
                                   std::span<const prefill_piece> pieces) {
  if (pieces.empty()) return times_of(design, cost, rows, context, busiest_context);
  auto t = whole_times(design, cost, rows, context, busiest_context);
  const auto& group = design.compute;
  const auto linear = [&](double x) {
    return cost.model_s(group, x) + cost.all_reduce_s(group, x);
  };
  double tokens = 0, more = 0;
  for (const auto& x : pieces) {
    tokens += x.tokens;
    more += cost.prompt_attention_s(group, x.tokens, x.position);
  }
  more += linear(rows + tokens) - linear(rows);
  t.model += more;
  t.host = design.host.of(rows + static_cast<double>(pieces.size()));
  if (design.disaggregated()) {
    const auto path = cost.path(design.network, group, design.memory);
    const auto bytes = tokens * cost.model().kv_wire_bytes_per_token();
    t.network += std::max(0.0, bytes / path.bandwidth - more);
    t.compute_nics += bytes / path.one;
    t.memory_nics += bytes / path.other;
  }
  add_context(t, design, cost, rows + tokens);
  add_stages(t, design, cost, rows + tokens);
  return t;
}

namespace {

std::string describe_prompts(const decode_design& design) {
  if (design.prefill_beside) return ", prefill on the decode devices";
  if (design.prefill_servers == 0) return "";
  const auto one = std::to_string(design.prefill.count) + " x " + design.prefill.kind.name;
  return ", prompts on "
         + (design.prefill_servers > 1 ? std::to_string(design.prefill_servers) + " x (" + one + ")"
                                       : one);
}

} // namespace

std::string describe(const decode_design& design) {
  const auto& c = design.compute;
  const auto nics_of = [](const device_group& g, uint32_t groups) {
    return std::to_string((g.nics > 0 ? g.nics : g.count) * groups);
  };
  const auto stages = std::to_string(design.stages) + " stages";
  if (!design.disaggregated())
    return (design.replicas > 1 ? std::to_string(design.replicas) + " x (" : "")
           + (design.stages > 1 ? stages + " of " : "") + std::to_string(c.count) + " x "
           + c.kind.name + (design.replicas > 1 ? ")" : "")
           + (c.nics > 0 ? ", " + nics_of(c, design.groups())
                               + (c.nics * design.groups() == 1 ? " NIC" : " NICs")
                         : "")
           + describe_prompts(design);
  return "DOP (" + std::to_string(c.count * design.groups()) + ","
         + std::to_string(design.memory.count) + ") " + c.kind.name + " + "
         + design.memory.kind.name + ", n = " + std::to_string(design.batches)
         + (design.stages > 1 ? ", " + stages : "")
         + (design.partition == partition_kind::requests ? ", by request" : "")
         + (c.nics > 0 || design.memory.nics > 0
                ? ", NICs " + nics_of(c, design.groups()) + " + " + nics_of(design.memory, 1)
                : "")
         + describe_prompts(design);
}

} // namespace lamella::scheduler
