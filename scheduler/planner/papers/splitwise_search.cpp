/// SLOs of a cluster, and the load that it keeps them under.
#include "scheduler/planner/papers/splitwise.hpp"

#include <algorithm>

namespace lamella::scheduler {

bool splitwise_result::meets_slo() const {
  constexpr double quantiles[] = {0.5, 0.9, 0.99};
  constexpr double ttft_limits[] = {2, 3, 6}, other_limits[] = {1.25, 1.5, 5};
  for (int i = 0; i < 3; ++i)
    if (ttft_slowdown.quantile(quantiles[i]) > ttft_limits[i]
        || tbt_slowdown.quantile(quantiles[i]) > other_limits[i]
        || e2e_slowdown.quantile(quantiles[i]) > other_limits[i])
      return false;
  return true;
}

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

double machine_kind::watts_of(double prompt_tokens, double requests) const {
  const bool prompts = prompt_tokens > 0;
  const auto& power = prompts ? times.prompt_power : times.token_power;
  if (power.points() == 0) return 0;
  const auto share = power(prompts ? prompt_tokens + requests : requests);
  return device_watts * std::clamp(share, 0.0, power_cap);
}

} // namespace lamella::scheduler
