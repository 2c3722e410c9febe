#include "scheduler/planner/dop.hpp"

#include <cmath>
#include <vector>

namespace lamella::scheduler {

uint32_t memory_devices_for(const decode_design& design, const cost_model& cost, double rows,
                            double context, uint32_t most) {
  const auto turn = times_of(design, cost, rows, context).model / (design.batches - 1);
  uint32_t best = 1;
  double nearest = INFINITY;
  for (uint32_t b = 1; b <= most; ++b) {
    if (design.partition == partition_kind::heads && cost.model().kv_heads % b != 0) continue;
    const auto off = std::abs(cost.attention_s({design.memory.kind, b}, rows, context) - turn);
    if (off < nearest) {
      nearest = off;
      best = b;
    }
  }
  return best;
}

uint32_t batches_for(const decode_design& design, const cost_model& cost, double rows,
                     double context) {
  const auto per_token = [&](uint32_t n) {
    const auto t = times_of(design, cost, rows / n, context / n);
    const std::vector<iteration_times> all(n, t);
    return iteration_s(all, 0, design.replicas, pipeline_kind::rotational) / rows;
  };
  const auto more = design.groups() + 1;
  if (design.replicas > 1) return more; // one batch would leave replicas without work
  return per_token(more) < per_token(1) ? more : 1;
}

} // namespace lamella::scheduler
