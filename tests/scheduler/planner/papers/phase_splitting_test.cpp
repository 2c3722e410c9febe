// Splitwise beyond its queues: who goes where, what runs together, power, and jobs without limits.
#include "scheduler/planner/papers/splitwise.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace lamella::scheduler;

namespace {

/// 10 ms and 100 us per prompt token; 20 ms per token and 1 ms more for each request beyond the
/// first. Devices of 1000 W draw half of that for short prompts, all of it for long ones, and
/// 400 W for tokens.
machine_kind machine() {
  machine_kind k;
  k.times.prompt_s = piecewise_linear{{{0, 0.01}, {1000, 0.11}}};
  k.times.token_batch_s = piecewise_linear{{{1, 0.020}, {11, 0.030}}};
  k.times.token_released_s = piecewise_linear{{{1, 0.020}}};
  k.times.prompt_power = piecewise_linear{{{0, 0.5}, {1000, 1.0}}};
  k.times.token_power = piecewise_linear{{{1, 0.4}, {64, 0.4}}};
  k.kv_tokens = 1e6;
  k.kv_bytes_per_token = 1e6;
  k.nic_bandwidth = 50e9;
  k.visible_transfer_s = 0.005;
  k.usd_per_hour = 10;
  k.device_watts = 1000;
  return k;
}

splitwise_options by_batch(batching_mode mode = batching_mode::mixed) {
  splitwise_options o;
  o.key = decode_key::batch;
  o.batching = mode;
  return o;
}

} // namespace

TEST_CASE("S-M01 every request has its TTFT, TBT and E2E, and their percentiles are in order") {
  const auto m = machine();
  const auto trace = with_arrivals(uniform_trace(200, 700, 54, 7), 5, 7);
  const auto r = simulate_splitwise({m, m, 2, 2}, m, trace, {});
  for (const auto* d : {&r.ttft, &r.tbt, &r.e2e}) {
    CHECK(d->count() == 200);
    CHECK(d->quantile(0.5) <= d->quantile(0.9));
    CHECK(d->quantile(0.9) <= d->quantile(0.99));
  }
  CHECK(r.e2e.mean() > r.ttft.mean());
}

TEST_CASE("S-M02 prompts beside tokens, prompts before tokens, or whole batches of requests") {
  const auto m = machine();
  // One machine: a request decodes when another one's prompt comes.
  const request_trace two{{0, 1000, 21, {}}, {0.2, 1000, 2, {}}};
  const auto play = [&](batching_mode mode) {
    return simulate_splitwise({m, m, 0, 1}, m, two, by_batch(mode));
  };
  const auto mixed = play(batching_mode::mixed), turns = play(batching_mode::continuous),
             whole = play(batching_mode::request);
  // The prompt waits for the end of the token under way (0.11 + 5 * 0.02), then takes 0.11 s.
  CHECK(mixed.ttft.max() == doctest::Approx(0.21 - 0.2 + 1.1 * 0.1101));
  CHECK(turns.ttft.max() == doctest::Approx(0.21 - 0.2 + 0.11));
  CHECK(turns.preempted == 1);
  CHECK(mixed.preempted == 0);
  // The first request runs as if it were alone; the second one waits for all of it.
  CHECK(whole.ttft.max() == doctest::Approx(0.11 + 20 * 0.02 - 0.2 + 0.11));
  CHECK(whole.seconds == doctest::Approx(0.11 + 20 * 0.02 + 0.11 + 0.02));
  CHECK(mixed.seconds < whole.seconds);
  CHECK(turns.seconds < whole.seconds);
  for (const auto* r : {&mixed, &turns, &whole}) CHECK(r->tokens == 23);
}

TEST_CASE("S-M02 every request ends in every mode, split or not, and none stands back for ever") {
  const auto m = machine();
  const auto trace = with_arrivals(uniform_trace(300, 900, 54, 17), 6, 17);
  for (const auto mode : {batching_mode::mixed, batching_mode::continuous, batching_mode::request})
    for (const uint32_t prompts : {0u, 2u}) {
      CAPTURE(prompts);
      const auto r = simulate_splitwise({m, m, prompts, 3}, m, trace, by_batch(mode));
      CHECK(r.requests == 300);
      CHECK(r.preempted_most <= 4);
    }
}

TEST_CASE("S-M04 the token machine is chosen at arrival, before the prompt has begun") {
  const auto m = machine();
  // Two prompts at once; both end together. Tokens of both on one machine would take 21 ms.
  const auto r =
      simulate_splitwise({m, m, 2, 2}, m, request_trace(2, {0, 1000, 11, {}}), by_batch());
  CHECK(r.tbt.max() == doctest::Approx(0.020 + 0.005 / 10)); // the transfer is in the first gap
}

TEST_CASE(
    "S-M05 a request joins the queue with the fewest pending tokens, not the fewest requests") {
  const auto m = machine();
  const request_trace trace{
      {0, 2000, 1, {}}, {0.001, 100, 1, {}}, {0.002, 100, 1, {}}, {0.003, 100, 1, {}}};
  const auto r = simulate_splitwise({m, m, 2, 1}, m, trace, {});
  // 2000 tokens on one machine; 100 on the other, and then twice 100 in one iteration.
  CHECK(r.ttft.max() == doctest::Approx(0.21));
  CHECK(r.ttft.sum()
        == doctest::Approx(0.21 + 0.02 + (0.021 + 0.03 - 0.002) + (0.021 + 0.03 - 0.003)));
}

TEST_CASE("S-M22 the highest rate is found within 1 %, and is the same for the same seed") {
  const auto m = machine();
  const auto sizes = uniform_trace(500, 700, 54, 7);
  const splitwise_design d{m, m, 2, 2};
  const auto rate = highest_rate(d, m, sizes, by_batch(), 7);
  CHECK(rate > 0);
  CHECK(highest_rate(d, m, sizes, by_batch(), 7) == rate);
  CHECK(keeps_slo(d, m, sizes, by_batch(), 7, rate));
  CHECK(highest_rate({m, m, 4, 4}, m, sizes, by_batch(), 7) > 1.5 * rate);
}

// The paper leaves a large cluster's scheduler open: what it needs is that parts lose little.
TEST_CASE("S-M31 two clusters with a scheduler each serve nearly what one of both does") {
  const auto m = machine();
  const auto sizes = uniform_trace(500, 700, 54, 7);
  const auto whole = highest_rate({m, m, 6, 6}, m, sizes, by_batch(), 7),
             half = highest_rate({m, m, 3, 3}, m, sizes, by_batch(), 7);
  MESSAGE("one scheduler ", whole, ", two ", 2 * half);
  CHECK(2 * half > 0.85 * whole);
  CHECK(2 * half < 1.02 * whole);
}

TEST_CASE("S-M28 prompts draw more the more they are, up to the cap; tokens draw the same") {
  auto m = machine();
  CHECK(m.watts_of(200, 0) == doctest::Approx(600));
  CHECK(m.watts_of(800, 0) == doctest::Approx(900));
  CHECK(m.watts_of(5000, 0) == doctest::Approx(1000));
  CHECK(m.watts_of(0, 1) == m.watts_of(0, 64));
  m.power_cap = 0.5; // felt by prompts, not by tokens (S-M19)
  CHECK(m.watts_of(800, 0) == doctest::Approx(500));
  CHECK(m.watts_of(0, 64) == doctest::Approx(400));
  // Energy of a request alone: its prompt at its power, its tokens at theirs.
  m.power_cap = 1;
  const auto r = simulate_splitwise({m, m, 1, 1}, m, {{0, 1000, 11, {}}}, {});
  CHECK(r.joules == doctest::Approx(0.11 * 1000 + 10 * 0.020 * 400));
  // Where nothing was measured, nothing is told.
  m.times.prompt_power = m.times.token_power = {};
  CHECK(simulate_splitwise({m, m, 1, 1}, m, {{0, 1000, 11, {}}}, {}).joules == 0);
}

TEST_CASE("S-M29 a cluster that was made for other requests serves them by its mixed pool") {
  const auto m = machine();
  // Many long prompts with few tokens, and short ones with many.
  const auto code = with_arrivals(uniform_trace(400, 1900, 14, 7), 14, 7),
             chat = with_arrivals(uniform_trace(400, 170, 200, 7), 14, 7);
  for (const auto* trace : {&code, &chat})
    for (const uint32_t prompts : {1u, 7u}) {
      const auto r = simulate_splitwise({m, m, prompts, 8 - prompts}, m, *trace, by_batch());
      CHECK(r.requests == 400);
      // One prompt machine cannot serve the code alone (0.2 s each); the mixed pool helps.
      if (trace == &code && prompts == 1) {
        CHECK(r.to_mixed > 0);
        CHECK(r.ttft.quantile(0.5) < 2);
      }
    }
}

TEST_CASE("S-M30 a batch job has no limits: requests per second for a dollar per hour") {
  auto m = machine();
  const auto job = uniform_trace(200, 700, 54, 7); // all at once
  const splitwise_design d{m, m, 2, 2};
  const auto r = simulate_splitwise(d, m, job, {});
  CHECK(r.requests_per_s() == doctest::Approx(200 / r.seconds));
  CHECK(r.requests_per_usd(d) == doctest::Approx(200 / r.seconds / 40));
  m.usd_per_hour = 20;
  CHECK(r.requests_per_usd({m, m, 2, 2}) == doctest::Approx(r.requests_per_usd(d) / 2));
}
