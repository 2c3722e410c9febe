#include "scheduler/planner/served_planner.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::scheduler {

namespace {

constexpr int attempts_max = 12; ///< each is one or two runs of the trace
constexpr double copies_max = 1e6;

} // namespace

served_plan plan_served(const served_profile& profile, const plan_question& q,
                        const request_trace& trace) {
  served_plan plan;
  plan.seats = profile.limits.seats;
  for (int attempt = 0;; ++attempt) {
    served_options options;
    options.seats = plan.seats;
    plan.result = simulate_served(profile, trace, options);
    plan.tokens_per_s = plan.result.tokens_per_s;
    if (q.rate > 0) {
      const auto output =
          static_cast<double>(plan.result.tokens) / static_cast<double>(plan.result.requests);
      const auto needed = static_cast<uint32_t>(
          std::clamp(std::ceil(q.rate * output / plan.tokens_per_s), 1.0, copies_max));
      plan.copies = std::max(needed, plan.copies);
      options.load = load_kind::arrivals;
      plan.result =
          simulate_served(profile, with_arrivals(trace, q.rate / plan.copies, 1), options);
    }
    const auto worst = worst_miss(plan.result.tbt, plan.result.ttft, plan.result.e2e, q.limits);
    plan.misses = worst.text;
    if (plan.ok() || attempt == attempts_max) return plan;
    // Seats cost throughput, copies cost money; where arrivals decide, fewer of them also help.
    if (worst.metric == latency_metric::tbt && plan.seats > 1) {
      const auto used = std::min<double>(plan.seats, std::ceil(plan.result.mean_batch) + 1);
      plan.seats =
          static_cast<uint32_t>(std::clamp(std::floor(used / std::min(2.0, worst.factor * 1.02)),
                                           1.0, static_cast<double>(plan.seats - 1)));
    } else if (q.rate > 0 && plan.copies < copies_max) {
      plan.copies += std::max(1u, plan.copies / 10);
    } else {
      return plan;
    }
  }
}

} // namespace lamella::scheduler
