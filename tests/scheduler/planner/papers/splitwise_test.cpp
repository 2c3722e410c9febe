#include "scheduler/planner/papers/splitwise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace lamella::scheduler;

namespace {

/// 100 us per prompt token, `token_ms` per token and 1 ms more for each request beyond the first.
machine_kind machine_of(double token_ms, double kv_tokens = 1e6) {
  machine_kind k;
  k.times.prompt_s = piecewise_linear{{{0, 0.01}, {1000, 0.11}}};
  k.times.token_batch_s = piecewise_linear{{{1, token_ms / 1e3}, {11, (token_ms + 10) / 1e3}}};
  k.times.token_released_s = piecewise_linear{{{1, token_ms / 1e3}}};
  k.kv_tokens = kv_tokens;
  k.kv_bytes_per_token = 1e6;
  k.nic_bandwidth = 50e9;
  k.visible_transfer_s = 0.005;
  return k;
}

} // namespace

TEST_CASE("S-M23 lines go through the medians and on beyond the ends") {
  const piecewise_linear f{{{2, 20}, {1, 10}, {1, 12}, {1, 14}, {4, 40}}};
  CHECK(f(1) == 12);
  CHECK(f(1.5) == 16);
  CHECK(f(3) == 30);
  CHECK(f(5) == 50);
  CHECK(f(0) == 4);
  CHECK_THROWS_AS(piecewise_linear{{}}, table_error);
}

TEST_CASE("S-M14 S-M15 a request alone: prompt, visible transfer, then token by token") {
  const auto m = machine_of(20);
  const splitwise_design d{m, m, 1, 1};
  for (const auto& [prompt, transfer] : {std::pair{1000u, 0.005}, {300u, 0.006}}) {
    const auto r = simulate_splitwise(d, m, {{0, prompt, 11, {}}}, {});
    CHECK(r.requests == 1);
    CHECK(r.tokens == 11);
    CHECK(r.ttft.mean() == doctest::Approx(0.01 + prompt * 1e-4));
    CHECK(r.transfers == 1);
    CHECK(r.transfer_s == doctest::Approx(transfer));
    CHECK(r.e2e.mean() == doctest::Approx(0.01 + prompt * 1e-4 + transfer + 10 * 0.020));
  }
  splitwise_options serialized;
  serialized.layer_wise = false;
  CHECK(simulate_splitwise(d, m, {{0, 1000, 11, {}}}, serialized).transfer_s
        == doctest::Approx(0.02));
}

TEST_CASE(
    "S-M25 S-M26 without prompt machines nothing is transferred, and prompts disturb tokens") {
  const auto m = machine_of(20);
  const auto trace = with_arrivals(uniform_trace(500, 1000, 100, 7), 4, 7);
  const auto split = simulate_splitwise({m, m, 4, 4}, m, trace, {});
  const auto mixed = simulate_splitwise({m, m, 0, 8}, m, trace, {});
  CHECK(mixed.transfers == 0);
  CHECK(split.transfers == 500);
  CHECK(split.requests == 500);
  CHECK(mixed.requests == 500);
  CHECK(mixed.tokens == split.tokens);
  CHECK(mixed.tbt.quantile(0.9) > 1.03 * split.tbt.quantile(0.9));
}

TEST_CASE("S-M10 short prompts share an iteration up to 2048 tokens") {
  const auto m = machine_of(20);
  // Seven prompts at once: the first runs alone, the other six of 600 in two iterations of three.
  const request_trace trace(7, {0, 600, 1, {}});
  const auto r = simulate_splitwise({m, m, 1, 1}, m, trace, {});
  CHECK(r.seconds == doctest::Approx(0.07 + 2 * (0.01 + 1800e-4)));
}

TEST_CASE("S-M03 S-M07 S-M08 overflowing prompts borrow token machines, which go back afterwards") {
  const auto m = machine_of(20);
  request_trace burst(60, {0, 2000, 10, {}});
  burst.push_back({100, 100, 10, {}});
  const auto r = simulate_splitwise({m, m, 2, 2}, m, burst, {});
  CHECK(r.to_mixed > 0);
  CHECK(r.requests == burst.size());
  // The late request finds two pools again: prompt here, tokens there.
  CHECK(r.transfers > 0);
}

TEST_CASE("S-M11 tokens wait when the KV memory is full, and all of them end") {
  const auto m = machine_of(20, 3000);
  const auto r = simulate_splitwise({m, m, 2, 1}, m, request_trace(17, {0, 900, 54, {}}), {});
  CHECK(r.requests == 17);
  CHECK(r.e2e.max() > 3 * (0.1 + 53 * 0.02)); // three fit at a time
}

TEST_CASE("S-M12 no request stands back more often than allowed") {
  const auto m = machine_of(20);
  const auto trace = with_arrivals(uniform_trace(400, 1900, 100, 3), 9, 3);
  splitwise_options o;
  o.preemptions = 4;
  const auto r = simulate_splitwise({m, m, 0, 3}, m, trace, o);
  CHECK(r.preempted > 0);
  CHECK(r.preempted_most <= 4);
  CHECK(r.requests == 400);
}

TEST_CASE("S-M24 all nine limits must hold") {
  splitwise_result r;
  const auto fill = [](distribution& d, double x) { d = {}, d.add(x); };
  fill(r.ttft_slowdown, 1.9), fill(r.tbt_slowdown, 1.2), fill(r.e2e_slowdown, 1.2);
  CHECK(r.meets_slo());
  fill(r.ttft_slowdown, 2.1);
  CHECK_FALSE(r.meets_slo());
  fill(r.ttft_slowdown, 1.9), fill(r.e2e_slowdown, 1.3);
  CHECK_FALSE(r.meets_slo());
  fill(r.e2e_slowdown, 1.2);
  for (int i = 0; i < 97; ++i) r.tbt_slowdown.add(1.2);
  for (int i = 0; i < 2; ++i) r.tbt_slowdown.add(6);
  CHECK_FALSE(r.meets_slo()); // P99 alone
}

TEST_CASE("C23 by the batch, decoding slows down with it; by the released key it does not") {
  const auto m = machine_of(20);
  const auto trace = with_arrivals(uniform_trace(600, 100, 200, 7), 10, 7);
  splitwise_options released, batch;
  batch.key = decode_key::batch;
  const auto a = simulate_splitwise({m, m, 1, 2}, m, trace, released).tbt.mean(),
             b = simulate_splitwise({m, m, 1, 2}, m, trace, batch).tbt.mean();
  CHECK(a == doctest::Approx(0.020).epsilon(0.02));
  CHECK(b > 1.2 * a);
}

TEST_CASE("S-M27 what was on a lost machine runs again from its beginning, or its checkpoint") {
  const auto m = machine_of(20);
  const splitwise_design d{m, m, 1, 2};
  const request_trace one{{0, 1000, 101, {}}};
  const auto quiet = simulate_splitwise(d, m, one, {});
  splitwise_options o;
  o.failures = {{1, 1.0, 10}};
  const auto lost = simulate_splitwise(d, m, one, o);
  CHECK(lost.restarted == 1);
  CHECK(lost.tokens == 101);
  CHECK(lost.lost_tokens > 10);
  CHECK(lost.ttft.mean() == doctest::Approx(quiet.ttft.mean())); // that token was there before
  CHECK(lost.e2e.mean() == doctest::Approx(1.0 + quiet.e2e.mean()));
  o.checkpoint = true;
  const auto kept = simulate_splitwise(d, m, one, o);
  CHECK(kept.restarted == 1);
  CHECK(kept.tokens == 101);
  CHECK(kept.e2e.mean()
        == doctest::Approx(1.0 + quiet.e2e.mean() - quiet.ttft.mean())); // no second prompt
  // A prompt whose machine is lost begins anew; where the tokens were to go is another matter.
  o.failures = {{0, 0.05, 10}};
  const auto prompt = simulate_splitwise(d, m, one, o);
  CHECK(prompt.restarted == 1);
  CHECK(prompt.lost_tokens == 0);
  CHECK(prompt.ttft.mean() == doctest::Approx(0.05 + quiet.ttft.mean()));
  o.failures = {{1, 0.05, 10}};
  const auto moved = simulate_splitwise(d, m, one, o);
  CHECK(moved.restarted == 0);
  CHECK(moved.e2e.mean() == doctest::Approx(quiet.e2e.mean()));
  // With nobody left, requests wait for the first repair.
  o.failures = {{0, 0.05, 7}, {1, 0.05, 9}, {2, 0.05, 9}};
  const auto all = simulate_splitwise(d, m, one, o);
  CHECK(all.requests == 1);
  CHECK(all.ttft.mean() == doctest::Approx(7.05 + quiet.ttft.mean()));
  o.failures = {{3, 1, 1}};
  CHECK_THROWS_AS(simulate_splitwise(d, m, one, o), std::invalid_argument);
}

TEST_CASE("S-M27 machines fail under load: every request ends, with all its tokens") {
  constexpr uint64_t seed = 17;
  MESSAGE("seed " << seed);
  const auto m = machine_of(20, 60'000);
  const auto trace = with_arrivals(uniform_trace(600, 1000, 100, seed), 6, seed);
  uint64_t tokens = 0;
  for (const auto& x : trace) tokens += x.output_tokens;
  for (const bool checkpoint : {false, true})
    for (const uint32_t prompts : {0u, 3u}) {
      CAPTURE(checkpoint);
      CAPTURE(prompts);
      splitwise_options o;
      o.checkpoint = checkpoint;
      for (uint32_t i = 0; i < 30; ++i) o.failures.push_back({i % 7, 2.0 + 3 * i, 5});
      const splitwise_design d{m, m, prompts, 7 - prompts};
      const auto r = simulate_splitwise(d, m, trace, o);
      CHECK(r.requests == trace.size());
      CHECK(r.tokens == tokens);
      CHECK(r.restarted > 10);
      const auto quiet = simulate_splitwise(d, m, trace, {});
      CHECK(r.e2e.mean() > quiet.e2e.mean());
      CHECK(quiet.restarted == 0);
    }
}

TEST_CASE("S-M09 a machine that stays mixed for long changes its pool") {
  const auto m = machine_of(20, 20'000);
  // Long outputs: one token machine is too few, and prompt machines have to help.
  const auto trace = with_arrivals(uniform_trace(400, 200, 400, 3), 6, 3);
  splitwise_options o;
  o.key = decode_key::batch;
  const auto never = simulate_splitwise({m, m, 6, 1}, m, trace, o);
  CHECK(never.to_mixed > 0);
  CHECK(never.repurposed == 0);
  o.repurpose_s = 1;
  const auto some = simulate_splitwise({m, m, 6, 1}, m, trace, o);
  CHECK(some.repurposed > 0);
  CHECK(some.requests == 400);
  CHECK(some.seconds < never.seconds); // more machines do what there is most of
}

TEST_CASE("S-M06 a scheduler that hears of loads now and then does nearly as well") {
  const auto m = machine_of(20, 60'000);
  const auto trace = with_arrivals(uniform_trace(1000, 1000, 100, 29), 12, 29);
  splitwise_options o;
  const auto fresh = simulate_splitwise({m, m, 3, 4}, m, trace, o);
  o.report_s = 1e9; // knows what it sent, and never what has ended
  const auto blind = simulate_splitwise({m, m, 3, 4}, m, trace, o);
  o.report_s = 1e-4;
  const auto often = simulate_splitwise({m, m, 3, 4}, m, trace, o);
  o.report_s = 0.2;
  const auto stale = simulate_splitwise({m, m, 3, 4}, m, trace, o);
  for (const auto* r : {&fresh, &blind, &often, &stale}) CHECK(r->requests == trace.size());
  CHECK(often.ttft.mean() == doctest::Approx(fresh.ttft.mean()).epsilon(0.01));
  CHECK(stale.ttft.mean() >= fresh.ttft.mean() * 0.99);
  CHECK(stale.ttft.mean() < fresh.ttft.mean() * 1.5);
  CHECK(blind.to_mixed > stale.to_mixed); // it takes the machines for full
}

TEST_CASE(
    "Little's law: requests that decode are their rate times how long they do, failures or not") {
  const auto m = machine_of(20);
  const auto trace = with_arrivals(uniform_trace(500, 1000, 100, 7), 4, 7);
  for (const bool fails : {false, true}) {
    splitwise_options o;
    if (fails) o.failures = {{1, 20.0, 10}, {1, 25.0, 10}, {2, 30.0, 5}, {2, 1e6, 5}};
    const auto r = simulate_splitwise({m, m, 4, 4}, m, trace, o);
    CHECK(r.requests == 500);
    CHECK(r.failures == (fails ? 2 : 0)); // one was down, one came after the end
    CHECK(r.mean_decoding
          == doctest::Approx((r.e2e.sum() - r.ttft.sum()) / r.seconds).epsilon(1e-9));
  }
}
