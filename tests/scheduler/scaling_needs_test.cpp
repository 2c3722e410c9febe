#include "scheduler/scaling_needs.hpp"

#include "tests/scheduler/scaling_looks.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using lamella::tests::good_look;
using lamella::tests::idle_look;

namespace {

constexpr auto model = scaled_pool::model, attention = scaled_pool::attention,
               prefill = scaled_pool::prefill;

/// The pools that are too small: "m", "a" and "p" in this order.
std::string small(const scaling_look& x, const scaling_settings& s = {}) {
  const auto why = too_small(x, s);
  std::string text;
  if (!why[model].empty()) text += "m";
  if (!why[attention].empty()) text += "a";
  if (!why[prefill].empty()) text += "p";
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("no pool is too small at its limits, each is beyond them") {
  CHECK(small(good_look()) == "");
  auto x = good_look();
  x.kv_used = 800;
  CHECK(small(x) == "");
  x.kv_used = 810;
  CHECK(small(x) == "a");
  CHECK(too_small(x, {})[attention] == "KV in use is 81 % of the slots, above 80 %");
  x.kv_used = 400;
  x.kv_wanted = 500;
  CHECK(too_small(x, {})[attention] == "KV in use and waited for is 90 % of the slots, above 80 %");
  CHECK_FALSE(kv_fits(x, {}, attention, 1));
  x = good_look();
  x.tbt_p99 = x.tbt_target;
  x.ttft_p99 = x.ttft_target;
  CHECK(small(x) == "");
  x.ttft_p99 = scaling_seconds{2.1};
  CHECK(small(x) == "p");
  x.ttft_target = scaling_seconds{0};
  CHECK(small(x) == "");
}

TEST_CASE("L-M19 a late TBT is attention's where it takes longer than a replica's turn") {
  auto x = good_look();
  x.tbt_p99 = scaling_seconds{0.11};
  x.attention_work = scaling_seconds{0.021}; // a turn is 0.04 s / 2
  CHECK(small(x) == "a");
  CHECK(has(too_small(x, {})[attention], "21 ms against a turn of 20 ms"));
  x.attention_work = scaling_seconds{0.019};
  CHECK(small(x) == "m");
  x.attention_work = scaling_seconds{0.0004};
  CHECK(has(too_small(x, {})[model], "0.40 ms against a turn of 20 ms"));
  x.attention_work = scaling_seconds{0.019};
  x.batches = 4; // more batches, a shorter turn
  CHECK(small(x) == "a");
  x.batches = 1;
  CHECK(small(x) == "m");
  x.pools[attention] = {}; // the replicas attend themselves
  x.attention_work = scaling_seconds{1};
  CHECK(small(x) == "m");
}

TEST_CASE("the queue is of those who compute prompts, unless they are idle or KV is short") {
  auto x = good_look();
  x.queue = 8; // four for each replica
  x.queue_age = scaling_seconds{5};
  CHECK(small(x) == "");
  x.queue = 9;
  CHECK(small(x) == "p");
  x.queue = 1;
  x.queue_age = scaling_seconds{5.5};
  CHECK(small(x) == "p");
  CHECK(too_small(x, {})[prefill] == "a prompt has waited 5500 ms, more than 5000 ms");
  x.pools[prefill].busy = 0.3;
  CHECK(small(x) == "m");
  x.pools[prefill].busy = -1; // unknown
  CHECK(small(x) == "p");
  x.pools[prefill] = {};
  CHECK(small(x) == "m");
  x.kv_used = 900;
  CHECK(small(x) == "a");
}

TEST_CASE("KV in replicas without shards makes the replicas too small") {
  auto x = good_look();
  x.pools[attention] = {};
  x.kv_used = 900;
  CHECK(small(x) == "m");
  CHECK(x.kv_use_with(3) == doctest::Approx(0.6));
  CHECK_FALSE(kv_fits(x, {}, model, 1));
  CHECK(kv_fits(x, {}, prefill, 1));
}

TEST_CASE("L-M19 an iteration with other numbers of members follows the rotation") {
  auto x = good_look();
  // Three batches take turns: 60 ms by two replicas, which are the bound, 60 ms by attention.
  CHECK(slowdown(x, attention, 4) == doctest::Approx(1));
  CHECK(slowdown(x, attention, 1) == doctest::Approx(2));
  // With one replica two batches are left, each with half as many rows again.
  CHECK(slowdown(x, model, 1) == doctest::Approx(0.12 / 0.06));
  CHECK(slowdown(x, model, 4) <= 1);
  CHECK(slowdown(x, prefill, 1) == doctest::Approx(1));
  x.model_work = x.attention_work = scaling_seconds{0};
  CHECK(slowdown(x, model, 1) == doctest::Approx(2));
}

TEST_CASE("fewer members would do where every limit is kept by the margin") {
  const scaling_settings s;
  const auto idle = idle_look();
  for (const auto pool : scaled_pools) CHECK(would_do(idle, s, pool, 1));
  const auto with = [&](auto change) {
    auto x = idle;
    change(x);
    return x;
  };
  // The KV in use would be 72 % at most, and is below half now.
  CHECK(would_do(with([](auto& x) { x.kv_used = 360; }), s, attention, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.kv_used = 361; }), s, attention, 1));
  const auto eight = with([](auto& x) { x.pools[attention].members = 8; });
  auto half = eight;
  half.kv_used = 499;
  CHECK_FALSE(would_do(half, s, attention, 4));
  half.kv_used = 350;
  CHECK(would_do(half, s, attention, 4));
  CHECK(would_do(with([](auto& x) { x.kv_used = 361; }), s, model, 1));
  // Twice the time would be within a tenth of the target.
  CHECK(would_do(with([](auto& x) { x.tbt_p99 = scaling_seconds{0.045}; }), s, model, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.tbt_p99 = scaling_seconds{0.046}; }), s, model, 1));
  CHECK(would_do(with([](auto& x) { x.ttft_p99 = scaling_seconds{0.9}; }), s, prefill, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.ttft_p99 = scaling_seconds{0.91}; }), s, prefill, 1));
  CHECK(would_do(with([](auto& x) { x.ttft_p99 = scaling_seconds{0.91}; }), s, model, 1));
  CHECK(would_do(with([](auto& x) { x.pools[prefill].busy = 0.4; }), s, prefill, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.pools[prefill].busy = 0.41; }), s, prefill, 1));
  // Members that are busier let prompts wait longer: 0.6 / 0.2 times 0.7 s.
  CHECK_FALSE(would_do(with([](auto& x) {
                         x.pools[prefill].busy = 0.4;
                         x.ttft_p99 = scaling_seconds{0.7};
                       }),
                       s, prefill, 1));
  // Half the queue that fewer replicas may have.
  CHECK(would_do(with([](auto& x) { x.queue = 2; }), s, model, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.queue = 3; }), s, model, 1));
  CHECK_FALSE(would_do(with([](auto& x) { x.queue_age = scaling_seconds{3}; }), s, attention, 1));
}
