// The simulated service: closed forms where there are any, and what must hold in every run.
#include "scheduler/planner/served_simulator.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <sstream>

using namespace lamella::scheduler;

namespace {

/// An iteration takes 10 ms whatever is in it, a chunk 1 ms per token; each goes on at half its
/// speed beside the other.
served_profile constant() {
  served_profile p;
  p.model = "m";
  p.kernels = "k";
  p.threads = 1;
  p.limits = {100'000, 32, 100, 8, 4096};
  p.decode = {{1, 10, 10e-3}, {8, 10, 10e-3}};
  p.prefill = {{50, 50e-3}, {100, 100e-3}};
  p.sharing = {{1, 0.5, 0.5}};
  return p;
}

request_trace equal(size_t count, uint32_t prompt, uint32_t output) {
  return request_trace(count, trace_request{0, prompt, output, {}});
}

} // namespace

TEST_CASE("one request takes its prompt and then its iterations") {
  const auto r = simulate_served(constant(), equal(1, 250, 11));
  CHECK(r.ttft.mean() == doctest::Approx(0.250)); // chunks of 100, 100 and 50
  CHECK(r.tbt.count() == 10);
  CHECK(r.tbt.mean() == doctest::Approx(0.010));
  CHECK(r.e2e.mean() == doctest::Approx(0.350));
  CHECK(r.tokens_per_s == doctest::Approx(11 / 0.350));
  CHECK(r.mean_batch == doctest::Approx(0.1 / 0.35));
  CHECK(r.extrapolated == doctest::Approx(1)); // contexts beyond the one that was measured
}

TEST_CASE("a prompt of one token's answer never joins the batch") {
  const auto r = simulate_served(constant(), equal(3, 100, 1));
  CHECK(r.iterations == 0);
  CHECK(r.tokens == 3);
  CHECK(r.e2e.max() == doctest::Approx(0.300));
}

TEST_CASE("a prompt beside decoding slows both down, at the rates of the profile") {
  // The second comes when the first has decoded for 100 ms; its prompt takes 100 ms alone, 200 ms
  // beside iterations that then take 20 ms.
  auto trace = equal(2, 100, 101);
  trace[1].arrival_s = 0.2;
  trace[1].output_tokens = 1;
  served_options o;
  o.load = load_kind::arrivals;
  std::vector<iteration_span> decode;
  o.on_iteration = [&](const iteration_span& x) {
    if (x.batch == 0) decode.push_back(x);
  };
  const auto r = simulate_served(constant(), trace, o);
  CHECK(r.ttft.max() == doctest::Approx(0.200));
  CHECK(r.seconds == doctest::Approx(0.1 + 1.0 + 0.1)); // ten iterations' worth is lost
  REQUIRE(decode.size() == 100);
  CHECK(decode[5].duration_s == doctest::Approx(0.010));
  CHECK(decode[15].duration_s == doctest::Approx(0.020));
  CHECK(decode[25].duration_s == doctest::Approx(0.010));
  CHECK(r.prefill_busy == doctest::Approx(0.3 / 1.2));
  CHECK(r.decode_busy == doctest::Approx(1.1 / 1.2));
}

TEST_CASE("who comes while an iteration runs waits for it and for the one launched behind it") {
  auto trace = equal(2, 100, 101);
  trace[1].arrival_s = 0.205;
  trace[1].output_tokens = 2;
  served_options o;
  o.load = load_kind::arrivals;
  const auto r = simulate_served(constant(), trace, o);
  // Its prompt ends at 0.405, the iteration that runs at 0.410, the next at 0.420, its own at
  // 0.430; the other request waits for 20 ms at most, beside the prompt.
  CHECK(r.tbt.max() == doctest::Approx(0.025));
}

TEST_CASE("S-M02 V-M16 a prompt that shares a launch adds its own time to it, the weights' once") {
  auto trace = equal(2, 100, 101);
  trace[1].arrival_s = 0.205;
  trace[1].output_tokens = 2;
  served_options o;
  o.load = load_kind::arrivals;
  o.mixed = true;
  o.bounds = {};
  o.bounds.beside = std::chrono::nanoseconds{0};
  const auto r = simulate_served(constant(), trace, o);
  // Two iterations were launched when it came; the third has its prompt and takes 10 + 100 ms.
  CHECK(r.ttft.max() == doctest::Approx(0.220 - 0.205 + 0.110));
  CHECK(r.tbt.max() == doctest::Approx(0.110));
  CHECK(r.seconds == doctest::Approx(0.1 + 1.0 + 0.1));
  CHECK(r.prefill_busy == doctest::Approx(0.1 / 1.2)); // the first prompt was alone
  CHECK(r.tokens == 103);
}

TEST_CASE("S-M02 S-M12 the composer of the live service bounds launches with prompts") {
  auto trace = equal(2, 100, 400);
  trace[1] = {0.205, 1000, 2, {}};
  served_options o;
  o.load = load_kind::arrivals;
  o.mixed = true;
  o.bounds.beside = std::chrono::milliseconds{30};
  std::vector<double> mixed;
  o.on_iteration = [&](const iteration_span& x) {
    if (x.batch == 0 && x.duration_s > 0.0101) mixed.push_back(x.duration_s);
  };
  const auto r = simulate_served(constant(), trace, o);
  REQUIRE(mixed.size() > 40);
  // Before it has learned; a token's work is a little more than one unit.
  CHECK(mixed[0] <= doctest::Approx(0.010 + composer::work_first * 1e-3));
  CHECK(mixed[0] > 0.060);
  for (size_t i = 4; i < mixed.size(); ++i) CHECK(mixed[i] < 0.034);
  CHECK(r.requests == 2);
  CHECK(r.tokens == 402);
}

TEST_CASE(
    "S-M12 a prompt comes sooner where sequences stand back, and each does so at most N times") {
  auto trace = equal(4, 100, 400);
  trace[3] = {0.205, 1000, 2, {}};
  served_options o;
  o.load = load_kind::arrivals;
  o.mixed = true;
  o.bounds = {std::chrono::milliseconds{60}, std::chrono::milliseconds{30}};
  double ttft = 1e9;
  for (const uint32_t n : {0u, 2u, 8u}) {
    CAPTURE(n);
    o.stand_backs = n;
    uint32_t without = 0; // launches of prompts while sequences decode
    o.on_iteration = [&](const iteration_span& x) {
      if (x.batch == 1 && x.start_s > 0.205) ++without;
    };
    const auto r = simulate_served(constant(), trace, o);
    CHECK(r.requests == 4);
    CHECK(r.tokens == 3 * 400 + 2);
    CHECK(r.ttft.max() < ttft); // that of the long prompt
    ttft = r.ttft.max();
    if (n == 0) continue;
    CHECK(r.tbt.max() <= doctest::Approx(0.060 * n + 0.1));
  }
}

TEST_CASE("S-M12 sequences stand back for prompts whose work, not whose tokens, are too many") {
  static_assert(prefill_work(0, 60) < composer::work_first);
  static_assert(prefill_work(0, 63) > composer::work_first);
  for (const uint32_t tokens : {60u, 63u}) {
    CAPTURE(tokens);
    auto trace = equal(2, 100, 400);
    trace[1] = {0.205, tokens, 2, {}};
    served_options o;
    o.load = load_kind::arrivals;
    o.mixed = true;
    o.stand_backs = 4;
    uint32_t alone = 0; // launches of the prompt without rows of the first request
    double decoded_s = 0;
    o.on_iteration = [&](const iteration_span& x) {
      if (x.batch == 0) decoded_s = x.start_s; // told of before the prompts of the same launch
      alone += x.batch == 1 && x.start_s > 0.205 && x.start_s != decoded_s;
    };
    CHECK(simulate_served(constant(), trace, o).requests == 2);
    CHECK(alone == (tokens == 60 ? 0 : 1));
  }
}

TEST_CASE("S-M02 V-M14 with mixed launches scarce slots cost no tokens, and the same runs again") {
  const auto trace = uniform_trace(200, 300, 170, 54);
  auto scarce = constant();
  scarce.limits.slots = 1000;
  served_options o;
  o.mixed = true;
  const auto r = simulate_served(scarce, trace, o), again = simulate_served(scarce, trace, o),
             separate = simulate_served(scarce, trace);
  CHECK(r.requests == separate.requests);
  CHECK(r.tokens == separate.tokens);
  CHECK(r.preemptions > 0);
  CHECK(r.rate_times_stay == doctest::Approx(r.running_over_time));
  CHECK(r.seconds == again.seconds);
}

TEST_CASE("seats bound the batch, and who waits for one begins when one is free") {
  const auto r = simulate_served(constant(), equal(9, 1, 1001));
  // Eight at a time: the ninth begins when the others, which are nearly alike, have ended.
  CHECK(r.seconds == doctest::Approx(20.0).epsilon(0.02));
  CHECK(r.ttft.max() == doctest::Approx(10.0).epsilon(0.02));
  served_options o;
  o.seats = 9;
  CHECK(simulate_served(constant(), equal(9, 1, 1001), o).seconds
        == doctest::Approx(10.0).epsilon(0.02));
}

TEST_CASE("V-M14 scarce slots cost time and no tokens; Little's law holds; the same runs again") {
  constexpr uint64_t seed = 54;
  MESSAGE("seed " << seed);
  auto trace = uniform_trace(200, 300, 170, seed);
  uint64_t tokens = 0;
  for (const auto& x : trace) tokens += x.output_tokens;
  for (const auto load : {load_kind::saturated, load_kind::arrivals})
    for (const uint32_t slots : {700u, 1000u, 100'000u}) {
      CAPTURE(slots);
      auto p = constant();
      p.limits.slots = slots;
      served_options o;
      o.load = load;
      const auto x = with_arrivals(trace, 0.9, seed);
      const auto r = simulate_served(p, x, o);
      CHECK(r.requests == trace.size());
      CHECK(r.tokens == tokens);
      CHECK(r.tbt.count() == tokens - trace.size());
      CHECK(r.running_over_time == doctest::Approx(r.rate_times_stay).epsilon(1e-6));
      if (slots == 1000) CHECK(r.preemptions > 0);
      if (slots == 100'000) CHECK(r.preemptions == 0);
      const auto again = simulate_served(p, x, o);
      CHECK(again.seconds == r.seconds);
      CHECK(again.e2e.sum() == r.e2e.sum());
    }
}

TEST_CASE("requests that the service could not hold are left out and counted") {
  auto trace = equal(3, 100, 10);
  trace[1].prompt_tokens = 4090;
  const auto r = simulate_served(constant(), trace);
  CHECK(r.never_fit == 1);
  CHECK(r.requests == 2);
  CHECK_THROWS_AS(simulate_served(constant(), equal(2, 5000, 5)), std::invalid_argument);
}

TEST_CASE("a queue longer than the service takes is worked off all the same") {
  const auto r = simulate_served(constant(), equal(1500, 10, 2));
  CHECK(r.requests == 1500);
}
