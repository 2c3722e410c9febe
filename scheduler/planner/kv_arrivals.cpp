#include "scheduler/planner/kv_arrivals.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

/// A pull never starves: decoding waits for the piece that is under way.
constexpr double least_share = 0.05;

} // namespace

kv_arrivals::kv_arrivals(const decode_design& design, const cost_model& cost)
    : kv_bytes_{cost.model().kv_bytes_per_token()}, layers_{static_cast<double>(
                                                        cost.model().layers)},
      path_{cost.path(design.network, design.prefill,
                      design.disaggregated() ? design.memory : design.compute)} {}

double kv_arrivals::arrival(double tokens, double from, double now, double share) {
  const auto sending = tokens * kv_bytes_ / path_.one;
  const auto receiving = tokens * kv_bytes_ / (path_.other * std::max(least_share, 1 - share));
  free_ = std::max(free_, from) + receiving;
  return std::max({free_, from + sending, now + std::max(sending, receiving) / layers_});
}

} // namespace lamella::scheduler
