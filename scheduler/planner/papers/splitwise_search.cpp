/// SLOs of a cluster, and the load that it keeps them under.
#include "scheduler/planner/papers/splitwise.hpp"

namespace lamella::scheduler {

bool keeps_slo(const splitwise_design& design, const machine_kind& reference,
               const request_trace& sizes, const splitwise_options& options, uint64_t seed,
               double rate) {
  const auto mixed = shuffled(sizes, seed);
  request_trace trace(static_cast<size_t>(rate * 120) + 1);
  for (size_t i = 0; i < trace.size(); ++i) trace[i] = mixed[i % mixed.size()];
  return simulate_splitwise(design, reference, with_arrivals(std::move(trace), rate, seed), options)
      .meets_slo();
}

double highest_rate(const splitwise_design& design, const machine_kind& reference,
                    const request_trace& sizes, const splitwise_options& options, uint64_t seed) {
  const auto meets = [&](double rate) {
    return keeps_slo(design, reference, sizes, options, seed, rate);
  };
  double low = 0.5, high = 1;
  if (!meets(low)) return 0;
  while (meets(high) && high < 1e4) low = high, high *= 2;
  while (high > low * 1.01) {
    const auto middle = (low + high) / 2;
    (meets(middle) ? low : high) = middle;
  }
  return low;
}

} // namespace lamella::scheduler
