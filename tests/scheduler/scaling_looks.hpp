/// Looks at services that do not exist, for tests of the autoscaler.
#pragma once

#include "scheduler/scaling_policy.hpp"

#include <optional>

namespace lamella::tests {

using namespace scheduler;

inline pool_look pool_of(uint32_t members, uint32_t least, uint32_t most, uint32_t heads = 0) {
  pool_look x;
  x.members = members;
  x.least = least;
  x.most = most;
  x.heads = heads;
  return x;
}

/// Two replicas, two shards of eight KV heads, two prefill workers; nothing wrong, and no reason
/// for fewer: KV use is between the limits, TBT and TTFT are near their targets.
inline scaling_look good_look() {
  scaling_look x;
  x.pools[scaled_pool::model] = pool_of(2, 1, 4);
  x.pools[scaled_pool::attention] = pool_of(2, 1, 8, 8);
  x.pools[scaled_pool::prefill] = pool_of(2, 1, 4);
  x.pools[scaled_pool::prefill].busy = 0.7;
  x.kv_used = 650;
  x.kv_slots = 1000;
  x.tbt_target = scaling_seconds{0.1};
  x.tbt_p99 = scaling_seconds{0.095};
  x.ttft_target = scaling_seconds{2};
  x.ttft_p99 = scaling_seconds{1.9};
  x.model_work = scaling_seconds{0.04};
  x.attention_work = scaling_seconds{0.02};
  x.batches = 3;
  x.tokens_per_s = 1000;
  return x;
}

/// Nothing to do, and nothing in the way of fewer members.
inline scaling_look idle_look() {
  auto x = good_look();
  x.kv_used = 0;
  x.tbt_p99 = x.ttft_p99 = scaling_seconds{0};
  x.tokens_per_s = 0;
  x.pools[scaled_pool::prefill].busy = 0;
  return x;
}

/// Looks once a second at the same, from `at` on, until there is a step or `seconds` have passed.
inline std::optional<scaling_step> look_on(scaling_policy& policy, scaling_look x, double& at,
                                           double seconds) {
  for (const double end = at + seconds; at < end;) {
    x.at = scaling_seconds{at};
    at += 1;
    if (auto step = policy.look(x).step) return step;
  }
  return std::nullopt;
}

} // namespace lamella::tests
