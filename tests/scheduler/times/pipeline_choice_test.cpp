#include "scheduler/times/pipeline_choice.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {

/// Of launches that cost `fixed` and a hundredth of a second for each 100 rows, and of attention.
auto times(double fixed, double attention) {
  return [=](double rows, double context) {
    iteration_times t;
    t.model = fixed + rows * 1e-4;
    t.attention = context * attention;
    return t;
  };
}

auto unknown() {
  return [](double, double) -> iteration_times { throw "asked for times that nobody measured"; };
}

pipeline_view view_of(double rows, double context) {
  pipeline_view x;
  x.rows = rows;
  x.positions = rows * context;
  x.measured = true;
  x.max_batch = 1000;
  return x;
}

} // namespace

TEST_CASE("V-M17 without measured times, batches rotate where they are larger than 128") {
  pipeline_view x;
  x.max_batch = 128;
  CHECK_FALSE(choose_pipeline(x, unknown()).rotates);
  x.max_batch = 129;
  CHECK(choose_pipeline(x, unknown()).rotates);
  CHECK(choose_pipeline(x, unknown()).reason.find("129") != std::string::npos);
  x.obstacle = "one device";
  const auto got = choose_pipeline(x, unknown());
  CHECK_FALSE(got.rotates);
  CHECK(got.reason == "one device");
}

TEST_CASE("V-M17 few sequences stay one batch, many are worth a second one") {
  // Reading the weights takes 20 ms, as long as attention for 100 sequences of 1000 tokens.
  const auto measured = times(0.020, 2e-7);
  CHECK_FALSE(choose_pipeline(view_of(1, 1000), measured).rotates);
  CHECK_FALSE(choose_pipeline(view_of(16, 1000), measured).rotates);
  const auto many = choose_pipeline(view_of(400, 1000), measured);
  CHECK(many.rotates);
  // Alone: 20 + 40 + 80 ms. Of two halves of 40 + 40 ms each device does one at a time.
  CHECK(many.rates.each == doctest::Approx(400 / 0.140));
  CHECK(many.rates.rotating == doctest::Approx(400 / 0.080));
  // Attention that takes next to nothing leaves nothing to overlap.
  CHECK_FALSE(choose_pipeline(view_of(400, 1000), times(0.020, 1e-10)).rotates);
}

TEST_CASE("L-M17 V-M17 several replicas rotate where that is better than a batch for each") {
  auto x = view_of(600, 1000);
  x.replicas = 2;
  const auto measured = times(0.001, 5e-8);
  const auto got = choose_pipeline(x, measured);
  const auto rates = rates_of(2, 3, 600, 600'000, measured);
  CHECK(got.rates == rates);
  CHECK(got.rotates == (rates.rotating > rates.each * pipeline_hysteresis));
  CHECK(got.rotates);
  x.rows = 2; // of three batches one would have none
  CHECK_FALSE(choose_pipeline(x, measured).rotates);
}

TEST_CASE("what runs stays where the other pipeline is little better") {
  // Where t_a of a whole batch is as long as the weights are read, both are equally good.
  for (const double share : {0.95, 1.0, 1.05}) {
    auto x = view_of(100, 1000);
    const auto measured = times(0.020, 0.020 * share / 100'000);
    CHECK_FALSE(choose_pipeline(x, measured).rotates);
    x.rotates = true;
    CAPTURE(choose_pipeline(x, measured).rates.each);
    CAPTURE(choose_pipeline(x, measured).rates.rotating);
    CHECK(choose_pipeline(x, measured).rotates);
  }
  auto x = view_of(16, 1000);
  x.rotates = true;
  CHECK_FALSE(choose_pipeline(x, times(0.020, 1e-9)).rotates);
}

TEST_CASE("fewer batches hold fewer sequences") {
  auto x = view_of(64, 1000);
  x.max_batch = 32;
  const auto measured = times(0.020, 1e-7);
  const auto got = choose_pipeline(x, measured);
  CHECK(got.rates.each == rates_of(1, 2, 32, 32'000, measured).each);
  CHECK(got.rates.rotating == rates_of(1, 2, 64, 64'000, measured).rotating);
}

TEST_CASE("a service changes its pipeline when the other one was chosen for a while") {
  pipeline_patience x;
  x.opened(0s);
  for (int s = 1; s < 90; ++s) {
    const bool other = s >= 20 && s != 50;
    CHECK(x.look(std::chrono::seconds{s}, other) == (s >= 81)); // 30 s after the doubt
  }
  x.opened(90s);
  for (int s = 91; s < 150; ++s) CHECK_FALSE(x.look(std::chrono::seconds{s}, true));
  CHECK(x.look(150s, true));
}
