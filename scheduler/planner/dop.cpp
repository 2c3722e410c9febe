#include "scheduler/planner/dop.hpp"

#include "scheduler/times/pipeline_choice.hpp"

#include <cmath>

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
  const auto more = design.groups() + 1;
  const auto rates =
      rates_of(design.replicas, more, rows, context,
               [&](double each, double tokens) { return times_of(design, cost, each, tokens); });
  return rates.rotating > rates.each ? more : design.replicas;
}

} // namespace lamella::scheduler
