#include "scheduler/planner/papers/splitwise_design.hpp"

#include <algorithm>

namespace lamella::scheduler {

double machine_kind::watts_of(double prompt_tokens, double requests) const {
  const bool prompts = prompt_tokens > 0;
  const auto& power = prompts ? times.prompt_power : times.token_power;
  if (power.points() == 0) return 0;
  const auto share = power(prompts ? prompt_tokens + requests : requests);
  return device_watts * std::clamp(share, 0.0, power_cap);
}

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

} // namespace lamella::scheduler
