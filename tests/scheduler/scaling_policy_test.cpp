#include "scheduler/scaling_policy.hpp"

#include "tests/scheduler/scaling_looks.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;
using lamella::tests::good_look;
using lamella::tests::idle_look;
using lamella::tests::look_on;
using lamella::tests::pool_of;

namespace {

constexpr auto model = scaled_pool::model, attention = scaled_pool::attention,
               prefill = scaled_pool::prefill;

scaling_look full_look() {
  auto x = good_look();
  x.kv_used = 900;
  return x;
}

scaling_decision at(scaling_policy& policy, scaling_look x, double seconds) {
  x.at = scaling_seconds{seconds};
  return policy.look(x);
}

} // namespace

TEST_CASE("a service that is as it should be stays as it is") {
  scaling_policy policy;
  double now = 0;
  CHECK_FALSE(look_on(policy, good_look(), now, 1000));
  CHECK(at(policy, good_look(), now).wish == by_pool<uint32_t>{{2, 2, 2}});
}

TEST_CASE("a look is of what came after the last step, and of ten seconds at most") {
  scaling_settings x;
  CHECK(window_of(x).count() == 10);
  x.cool_up = scaling_seconds{3.7};
  CHECK(window_of(x).count() == 3);
  x.cool_down = scaling_seconds{0.2};
  CHECK(window_of(x).count() == 1);
  x.cool_up = x.cool_down = scaling_seconds{60};
  CHECK(window_of(x).count() == 10);
}

TEST_CASE("a step comes when a pool has been too small for a while, and says why") {
  scaling_policy policy;
  double now = 0;
  CHECK_FALSE(look_on(policy, good_look(), now, 100));
  const auto step = look_on(policy, full_look(), now, 100);
  REQUIRE(step);
  CHECK(*step == scaling_step{attention, 2, 4, "KV in use is 90 % of the slots, above 80 %"});
  CHECK(now == 106); // five seconds after the first such look
}

TEST_CASE("one look that finds nothing wrong begins the while again") {
  scaling_policy policy;
  double now = 0;
  CHECK_FALSE(look_on(policy, good_look(), now, 100));
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(look_on(policy, full_look(), now, 5));
    CHECK_FALSE(look_on(policy, good_look(), now, 1));
  }
  CHECK(look_on(policy, full_look(), now, 6));
}

TEST_CASE("reasons that take turns do not keep pools from growing") {
  auto queue = good_look(), kv = full_look();
  queue.queue = 100; // without room for their KV they would wait all the same
  scaling_policy policy;
  double now = 0;
  look_on(policy, good_look(), now, 100);
  /// Of three looks two at the one and one at the other.
  const auto in_turn = [&](const scaling_look& more, const scaling_look& less) {
    std::optional<scaling_step> step;
    for (int i = 0; !step && i < 9; ++i) step = look_on(policy, i % 3 == 0 ? less : more, now, 1);
    REQUIRE(step);
    CHECK(now <= 109);
    return step->pool;
  };
  SUBCASE("more often KV: the shards grow") { CHECK(in_turn(kv, queue) == attention); }
  SUBCASE("more often the queue: who computes prompts grows") {
    CHECK(in_turn(queue, kv) == prefill);
  }
  SUBCASE("the one that is most often to blame cannot grow: another one does") {
    for (auto* x : {&kv, &queue}) x->pools[attention].most = x->pools[attention].members;
    CHECK(in_turn(kv, queue) == prefill);
  }
  SUBCASE("a reason that has been gone for a while begins again") {
    auto late = good_look();
    late.tbt_p99 = scaling_seconds{0.2};
    late.pools[model].most = late.pools[model].members;
    auto both = late;
    both.kv_used = 900;
    CHECK_FALSE(look_on(policy, both, now, 1));
    CHECK_FALSE(look_on(policy, late, now, 60));
    CHECK_FALSE(look_on(policy, both, now, 5));
    CHECK(look_on(policy, both, now, 1)->pool == attention);
  }
}

TEST_CASE("steps keep their distance, further for fewer members") {
  scaling_policy policy;
  double now = 0;
  auto x = full_look();
  REQUIRE(look_on(policy, x, now, 100));
  CHECK(now == 11); // the first look counts as a step: what was there before is not known
  x.pools[attention].members = 4;
  REQUIRE(look_on(policy, x, now, 100));
  CHECK(now == 22); // ten seconds after the change was seen
  x = idle_look();
  x.pools[attention].members = 8;
  const auto down = look_on(policy, x, now, 1000);
  REQUIRE(down);
  CHECK(down->to < down->from);
  CHECK(now == 83); // sixty seconds, likewise
}

TEST_CASE("a change that somebody else makes counts as a step") {
  scaling_policy policy;
  double now = 0;
  CHECK_FALSE(look_on(policy, idle_look(), now, 59));
  auto x = idle_look();
  x.pools[model].members = 3;
  CHECK_FALSE(look_on(policy, x, now, 60));
  CHECK(look_on(policy, x, now, 2));
}

TEST_CASE("nothing is decided while a scaling is under way") {
  scaling_policy policy;
  double now = 0;
  auto x = full_look();
  x.pools[model].wanted = 3;
  CHECK_FALSE(look_on(policy, x, now, 1000));
  CHECK(at(policy, x, now).wish == by_pool<uint32_t>{{3, 2, 2}});
  x.pools[model] = pool_of(3, 1, 4);
  const auto before = now;
  REQUIRE(look_on(policy, x, now, 100));
  CHECK(now - before >= 10);
}

TEST_CASE("steps stay within the bounds") {
  scaling_policy policy;
  double now = 0;
  auto x = full_look();
  x.pools[attention].most = 3; // and the next size would be four
  CHECK_FALSE(look_on(policy, x, now, 200));
  x = idle_look();
  for (const auto pool : scaled_pools) x.pools[pool].least = 2;
  CHECK_FALSE(look_on(policy, x, now, 500));
  // Bounds that changed are followed, one step at a time.
  x.pools[model].least = 3;
  CHECK(look_on(policy, x, now, 200) == scaling_step{model, 2, 3, "the pool keeps at least 3"});
  x.pools[model] = pool_of(4, 1, 2);
  CHECK(look_on(policy, x, now, 200) == scaling_step{model, 4, 3, "the pool may have 2"});
}

TEST_CASE("L-M24 an attention pool by heads has divisors of the KV heads only") {
  const auto sizes = [](uint32_t heads, scaling_look x) {
    std::vector<uint32_t> all;
    scaling_policy policy;
    double now = 0;
    x.pools[attention].heads = heads;
    x.pools[attention].most = 12;
    while (const auto step = look_on(policy, x, now, 500)) {
      if (step->pool == attention) all.push_back(step->to);
      x.pools[step->pool].members = step->to;
    }
    return all;
  };
  auto x = full_look();
  x.pools[attention].members = 1;
  CHECK(sizes(12, x) == std::vector<uint32_t>{2, 3, 4, 6, 12});
  CHECK(sizes(8, x) == std::vector<uint32_t>{2, 4, 8});
  CHECK(sizes(0, x) == std::vector<uint32_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  x = idle_look();
  x.pools[attention].members = 12;
  CHECK(sizes(12, x) == std::vector<uint32_t>{6, 4, 3, 2, 1});
}

TEST_CASE("a larger step goes over several allowed sizes") {
  scaling_settings s;
  s.step = 2;
  scaling_policy policy{s};
  double now = 0;
  auto x = full_look();
  x.pools[attention].members = 1;
  const auto step = look_on(policy, x, now, 100);
  REQUIRE(step);
  CHECK(step->to == 4);
}

TEST_CASE("no pool becomes smaller than the KV in use needs, whatever the bounds say") {
  for (double used = 0; used <= 1000; used += 10) {
    scaling_policy policy;
    double now = 0;
    auto x = idle_look();
    x.pools[attention] = pool_of(8, 1, 2, 8);
    x.kv_used = used;
    while (const auto step = look_on(policy, x, now, 300)) {
      if (step->pool == attention) {
        const double slots = 125.0 * step->to; // what members hold does not change
        if (step->to < step->from) CHECK(used <= 0.8 * slots + 1e-9);
        x.kv_slots = slots;
      }
      x.pools[step->pool].members = step->to;
    }
    const auto members = x.pools[attention].members;
    CHECK(members == (used <= 90 ? 1u : used <= 200 ? 2u : used <= 400 ? 4u : 8u));
  }
}

TEST_CASE("while a pool is too small, no other becomes smaller") {
  scaling_policy policy;
  double now = 0;
  auto x = idle_look();
  x.kv_used = 900;
  x.pools[attention].most = 2;
  CHECK_FALSE(look_on(policy, x, now, 1000));
  x.kv_used = 0;
  CHECK(look_on(policy, x, now, 1000));
}

TEST_CASE("members without KV go first, KV comes first") {
  scaling_policy policy;
  double now = 0;
  auto x = idle_look();
  std::vector<scaled_pool> order;
  while (const auto step = look_on(policy, x, now, 500)) {
    order.push_back(step->pool);
    x.pools[step->pool].members = step->to;
  }
  CHECK(order == std::vector{prefill, model, attention});
  x = full_look();
  x.tbt_p99 = scaling_seconds{0.2};
  order.clear();
  while (const auto step = look_on(policy, x, now, 500)) {
    order.push_back(step->pool);
    x.pools[step->pool].members = step->to;
    if (step->pool == attention && step->to == 8) x.kv_used = 300;
  }
  CHECK(order == std::vector{attention, attention, model, model});
}

TEST_CASE("a pool of which it is known what a step down leads to is judged by that") {
  scaling_policy policy;
  double now = 0;
  auto x = good_look();
  x.pools[model].least = x.pools[prefill].least = 2;
  x.pools[attention] = pool_of(4, 1, 8);
  x.kv_used = 100;
  x.tbt_p99 = scaling_seconds{0.2};
  x.attention_work = scaling_seconds{0.03};
  REQUIRE(look_on(policy, x, now, 100));
  x.pools[attention].members = 8;
  x.tbt_p99 = x.attention_work = scaling_seconds{0};
  x.pools[attention].lower = 4; // too small a moment ago
  CHECK_FALSE(look_on(policy, x, now, 300));
  x.pools[attention].lower = 6;
  const auto down = look_on(policy, x, now, 100);
  REQUIRE(down);
  CHECK(down->to == 6);
}

TEST_CASE("pools that others scale get a wish and no step") {
  scaling_policy policy;
  auto x = full_look();
  for (auto& p : x.pools.all) p.acts = false;
  double now = 0;
  CHECK_FALSE(look_on(policy, x, now, 100));
  const auto decision = at(policy, x, now);
  CHECK(decision.wish == by_pool<uint32_t>{{2, 4, 2}});
  CHECK_FALSE(decision.why[attention].empty());
  CHECK(decision.why[model].empty());
  x.pools[prefill] = {};
  CHECK(at(policy, x, now + 1).wish == by_pool<uint32_t>{{2, 4, 0}});
}

TEST_CASE("a wish stays while another pool is scaled, and goes when its reason does") {
  scaling_policy policy;
  auto x = full_look();
  x.tbt_p99 = scaling_seconds{0.2}; // replicas are too few, and so are shards, which others start
  x.pools[attention].acts = false;
  double now = 0;
  const auto step = look_on(policy, x, now, 100);
  REQUIRE(step);
  CHECK(step->pool == model);
  const by_pool<uint32_t> both{{3, 4, 2}};
  CHECK(at(policy, x, now).wish == both);
  x.pools[model].wanted = 3;
  CHECK(at(policy, x, now + 1).wish == both);
  x.pools[model] = pool_of(3, 1, 3);
  CHECK(at(policy, x, now + 2).wish == both);
  x.kv_used = 500; // reasons may take turns: one that comes back in time has not gone
  CHECK(at(policy, x, now + 3).wish == both);
  CHECK(at(policy, x, now + 7).wish == by_pool<uint32_t>{{3, 2, 2}});
}

TEST_CASE("settings may change between looks") {
  scaling_policy policy;
  double now = 0;
  auto x = good_look();
  CHECK_FALSE(look_on(policy, x, now, 100));
  scaling_settings s;
  s.kv_high = 0.6;
  policy.set(s);
  CHECK(look_on(policy, x, now, 10));
}

TEST_CASE("a smaller pool that was too small is tried again when there is less load") {
  scaling_policy policy;
  double now = 0;
  auto light = good_look(), heavy = good_look();
  light.pools[model].least = light.pools[attention].least = 2;
  light.ttft_p99 = scaling_seconds{0.1};
  light.pools[prefill].busy = 0.2;
  heavy = light;
  heavy.queue = 100;
  heavy.pools[prefill].members = 1;
  heavy.pools[prefill].busy = 1;
  const auto down = look_on(policy, light, now, 1000);
  REQUIRE(down);
  CHECK(down->pool == prefill);
  const auto up = look_on(policy, heavy, now, 1000); // that was a mistake
  REQUIRE(up);
  CHECK(up->to == 2);
  CHECK_FALSE(look_on(policy, light, now, 10'000));
  light.tokens_per_s = 790;
  CHECK(look_on(policy, light, now, 1000));
}
