// The autoscaler and a service that answers to it: no load makes it go up and down.
#include "scheduler/scaling_policy.hpp"

#include "tests/random.hpp"
#include "tests/scheduler/scaling_looks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace lamella::scheduler;
using lamella::tests::pool_of;

namespace {

constexpr auto model = scaled_pool::model, attention = scaled_pool::attention,
               prefill = scaled_pool::prefill;

/// A service of a rotation, in a few formulas. Its load is a rate of requests; a resource that is
/// too small for it has a queue that grows. Members come and go some seconds after a step.
struct service {
  double tokens_per_request = 200, slots_per_request = 1500;
  double slots_per_member = 100'000, prompts_per_member = 3; ///< per second
  double weights_s = 0.02, row_s = 2e-5, attention_s = 3e-7; ///< of an iteration
  double tbt_target = 0.08, ttft_target = 2;
  double noise = 0; ///< of what is measured, as a share
  double change_s = 15;
  bool with_prefill = true;

  by_pool<pool_look> pools{{pool_of(1, 1, 6), pool_of(1, 1, 8, 8), pool_of(1, 1, 6)}};
  double queue = 0, done_at = 0;
  std::optional<scaling_step> under_way;

  /// A second at `rate` requests per second.
  scaling_look second(double now, double rate, lamella::tests::splitmix& random) {
    if (under_way && now >= done_at) {
      pools[under_way->pool].members = under_way->to;
      pools[under_way->pool].wanted = 0;
      under_way.reset();
    }
    scaling_look x;
    x.pools = pools;
    if (!with_prefill) x.pools[prefill] = {};
    const double replicas = pools[model].members, shards = pools[attention].members;
    const double n = replicas + 1, slots = slots_per_member * shards;
    const double prompts = prompts_per_member * (with_prefill ? pools[prefill].members : replicas);
    const double most = 0.95 * slots / slots_per_request;
    const auto iteration = [&](double there) {
      const double rows = there / n, tm = weights_s + row_s * rows,
                   ta = attention_s * rows * slots_per_request / shards;
      x.model_work = scaling_seconds{tm};
      x.attention_work = scaling_seconds{ta};
      return std::max({tm + ta, n * ta, n * tm / replicas});
    };
    const double decoded = most / iteration(most) / tokens_per_request;
    const double served = std::min({decoded, prompts, queue > 0 ? 1e9 : rate});
    queue = std::max(0.0, queue + rate - served);
    // Requests there (Little's law) at the iteration time that they make: some rounds settle it.
    double there = 0, t = iteration(0);
    for (int i = 0; i < 50; ++i) {
      there = std::min(std::min(served, rate + queue) * tokens_per_request * t, most);
      t = iteration(there);
    }
    const auto measured = [&](double value) {
      return value * (1 + noise * (2 * random.uniform() - 1));
    };
    x.at = scaling_seconds{now};
    x.kv_used = std::min(0.97 * slots, measured(there * slots_per_request));
    x.kv_slots = slots;
    x.queue = static_cast<uint32_t>(queue);
    x.queue_age = scaling_seconds{queue / served};
    x.tbt_p99 = scaling_seconds{measured(1.1 * t)};
    x.tbt_target = scaling_seconds{tbt_target};
    const double load = std::min(1.0, served / prompts);
    x.ttft_p99 = scaling_seconds{measured(0.5 / (1 - std::min(0.9, load))) + queue / prompts};
    x.ttft_target = scaling_seconds{ttft_target};
    x.batches = static_cast<uint32_t>(n);
    x.tokens_per_s = measured(there / t);
    if (with_prefill) x.pools[prefill].busy = std::min(1.0, measured(load));
    return x;
  }

  void obey(const scaling_step& step, double now) {
    CHECK_FALSE(under_way); // one at a time
    CHECK(step.from == pools[step.pool].members);
    under_way = step;
    pools[step.pool].wanted = step.to;
    done_at = now + change_s;
  }
};

struct taken {
  double at;
  scaling_step step;
};

/// Lets the policy and the service go on for so many seconds.
template <class Rate>
std::vector<taken> run(service& s, scaling_policy& policy, double from, double seconds, Rate rate,
                       lamella::tests::splitmix& random) {
  std::vector<taken> all;
  for (double now = from; now < from + seconds; ++now) {
    const auto x = s.second(now, rate(now), random);
    const auto step = policy.look(x).step;
    if (!step) continue;
    INFO(now << " s: " << name_of(step->pool) << " " << step->from << " to " << step->to << ": "
             << step->reason);
    CHECK(x.pools[step->pool].allows(step->to));
    CHECK(step->to >= x.pools[step->pool].least);
    CHECK(step->to <= x.pools[step->pool].most);
    if (step->pool == attention && step->to < step->from)
      CHECK(x.kv_used <= 0.8 * s.slots_per_member * step->to + 1e-6);
    s.obey(*step, now);
    all.push_back({now, *step});
  }
  return all;
}

/// How often a pool's steps change their direction.
uint32_t turns(const std::vector<taken>& steps, scaled_pool pool) {
  uint32_t count = 0;
  int last = 0;
  for (const auto& x : steps) {
    if (x.step.pool != pool) continue;
    const int way = x.step.to > x.step.from ? 1 : -1;
    if (last != 0 && way != last) ++count;
    last = way;
  }
  return count;
}

/// A service whose numbers are drawn.
service drawn(lamella::tests::splitmix& random) {
  service s;
  s.tokens_per_request = 20 + 400 * random.uniform();
  s.slots_per_request = 200 + 5000 * random.uniform();
  s.slots_per_member = 20'000 + 300'000 * random.uniform();
  s.prompts_per_member = 0.5 + 6 * random.uniform();
  s.weights_s = 0.005 + 0.03 * random.uniform();
  s.row_s = 1e-4 * random.uniform();
  s.attention_s = 2e-6 * random.uniform();
  s.tbt_target = random.below(3) == 0 ? 0 : 0.02 + 0.1 * random.uniform();
  s.ttft_target = random.below(3) == 0 ? 0 : 0.6 + 3 * random.uniform();
  s.with_prefill = random.below(2) == 0;
  s.change_s = static_cast<double>(random.below(60));
  for (auto& p : s.pools.all)
    p.members = p.heads > 0 ? 1u << random.below(4) : 1 + static_cast<uint32_t>(random.below(6));
  return s;
}

} // namespace

TEST_CASE("L-M19 under a constant load the pools reach sizes that they keep") {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    auto s = drawn(random);
    const double rate = 0.2 + 12 * random.uniform() * random.uniform();
    scaling_policy policy;
    const auto before = run(
        s, policy, 0, 8000, [&](double) { return rate; }, random);
    const auto after = run(
        s, policy, 8000, 8000, [&](double) { return rate; }, random);
    CHECK(before.size() <= 60);
    CHECK(after.empty());
    for (const auto pool : scaled_pools) CHECK(turns(before, pool) <= 8);
  }
}

TEST_CASE("what is measured may be off by some per cent, and the pools stay all the same") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    auto s = drawn(random);
    s.noise = 0.04;
    const double rate = 0.2 + 12 * random.uniform() * random.uniform();
    scaling_policy policy;
    run(
        s, policy, 0, 8000, [&](double) { return rate; }, random);
    CHECK(run(
              s, policy, 8000, 8000, [&](double) { return rate; }, random)
              .empty());
  }
}

TEST_CASE("a load that rises takes the pools up, one that falls takes them down") {
  lamella::tests::splitmix random{1};
  service s;
  scaling_policy policy;
  const auto rise = [](double now) { return 0.5 + now / 1000; };
  const auto up = run(s, policy, 0, 8000, rise, random);
  CHECK_FALSE(up.empty());
  for (const auto& x : up) CHECK(x.step.to > x.step.from);
  CHECK(s.pools[prefill].members >= 3);
  CHECK(s.pools[attention].members >= 2);
  const auto fall = [](double now) { return std::max(0.2, 8.5 - (now - 8000) / 1000); };
  const auto down = run(s, policy, 8000, 12'000, fall, random);
  CHECK_FALSE(down.empty());
  for (const auto pool : scaled_pools) CHECK(turns(down, pool) <= 1);
  for (const auto pool : scaled_pools) CHECK(s.pools[pool].members == 1);
}

TEST_CASE("a burst is over before a pool follows it, a long one is followed") {
  lamella::tests::splitmix random{1};
  service s;
  scaling_policy policy;
  const auto short_burst = [](double now) { return now == 500 ? 8.0 : 0.5; };
  CHECK(run(s, policy, 0, 1000, short_burst, random).empty());
  const auto burst = [](double now) { return now < 1500 ? 8.0 : 0.5; };
  CHECK_FALSE(run(s, policy, 1000, 500, burst, random).empty());
}
