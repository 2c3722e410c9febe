#include "model/grammar/json_schema/number_grammar.hpp"

#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

using namespace lamella;
using model::any_within;
using model::bound_of;
using model::bound_side;
using model::decimal;
using model::grammar;
using model::number_bounds;
using model::number_form;
using tests::takes;

namespace {

model::grammar_states states_of(number_form form, const number_bounds& bounds) {
  return tests::states_of(
      [&](grammar& g, auto next) { return model::number_within(g, form, bounds, next); });
}

number_bounds between(const json_value& low, const json_value& high) {
  return {decimal::from(low), decimal::from(high)};
}

} // namespace

TEST_CASE("numbers without bounds are those of JSON") {
  auto any = states_of(number_form::any, {});
  for (const auto* text : {"0", "-0", "7", "-17", "54.25", "1e9", "1E-9", "-0.5e+10", "10"})
    CHECK_MESSAGE(takes(any, text), text);
  for (const auto* text : {"", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "1e999", "--1"})
    CHECK_MESSAGE(!takes(any, text), text);
  auto whole = states_of(number_form::integer, {});
  for (const auto* text : {"0", "7", "-17", "999999999999999999"})
    CHECK_MESSAGE(takes(whole, text), text);
  for (const auto* text : {"", "-0", "1.0", "1e3", "007", "1000000000000000000"})
    CHECK_MESSAGE(!takes(whole, text), text);
}

TEST_CASE("whole numbers are those within their bounds") {
  tests::splitmix random{7};
  for (int round = 0; round < 40; ++round) {
    const auto size = static_cast<int64_t>(round % 2 == 0 ? 30 : 20'000);
    const auto draw = [&] {
      return static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * size + 1))) - size;
    };
    auto low = draw(), high = draw();
    if (low > high) std::swap(low, high);
    auto states = states_of(number_form::integer, between(low, high));
    CHECK(any_within(number_form::integer, between(low, high)));
    CAPTURE(low);
    CAPTURE(high);
    for (const auto around : {low, high, int64_t{0}, draw(), draw()})
      for (int64_t n = around - 12; n <= around + 12; ++n)
        CHECK(takes(states, std::to_string(n)) == (n >= low && n <= high));
  }
}

TEST_CASE("fractions are compared digit by digit") {
  tests::splitmix random{1};
  const auto draw = [&] { // few digits, so that texts meet bounds
    return (static_cast<double>(random.below(4'001)) - 2'000) / (random.below(2) == 0 ? 1000 : 8);
  };
  for (int round = 0; round < 60; ++round) {
    auto low = draw(), high = draw();
    if (low > high) std::swap(low, high);
    const bool above_low = random.below(2) == 0, below_high = random.below(2) == 0;
    const number_bounds bounds{bound_of(low, number_form::any, bound_side::low, above_low),
                               bound_of(high, number_form::any, bound_side::high, below_high)};
    if (low == high && (above_low || below_high)) continue;
    auto states = states_of(number_form::any, bounds);
    CAPTURE(low);
    CAPTURE(high);
    for (int i = 0; i < 200; ++i) {
      const double near[] = {low, high, draw()};
      char text[64];
      // Up to three digits behind the point, with zeros at the end.
      std::snprintf(text, sizeof text, "%.*f", static_cast<int>(random.below(4)),
                    near[i % 3] + (static_cast<double>(random.below(5)) - 2) / 1000);
      const double x = std::strtod(text, nullptr);
      const bool inside = (above_low ? x > low : x >= low) && (below_high ? x < high : x <= high);
      // Zero has no sign in bounded numbers.
      if (text[0] == '-' && x == 0) continue;
      CHECK_MESSAGE(takes(states, text) == inside, text);
    }
  }
}

TEST_CASE("texts of a bounded number are within its bounds") {
  tests::splitmix random{54};
  for (const auto& [low, high] :
       {std::pair{0.0, 1.0}, {-1.5, 1.25}, {-3.0, -2.999}, {17.0, 17.0}, {0.001, 1e6}}) {
    auto states = states_of(number_form::any, between(low, high));
    for (int i = 0; i < 100; ++i) {
      const auto text = tests::draw_text(states, random, 30);
      const double x = std::strtod(text.c_str(), nullptr);
      CHECK_MESSAGE((x >= low && x <= high), text);
    }
  }
}

TEST_CASE("beyond a bound that is excluded is what readers read beyond it") {
  tests::splitmix random{3};
  for (int round = 0; round < 300; ++round) {
    double bound = (random.uniform() - 0.5) * std::pow(10, static_cast<double>(random.below(17)));
    if (random.below(3) == 0) bound = std::trunc(bound);
    const auto side = random.below(2) == 0 ? bound_side::low : bound_side::high;
    const auto at = bound_of(bound, number_form::any, side, true);
    auto states = states_of(number_form::any, side == bound_side::low ? number_bounds{at, {}}
                                                                      : number_bounds{{}, at});
    CAPTURE(bound);
    for (int i = 0; i < 60; ++i) {
      // Near the bound: its own digits, and others behind them.
      char text[64];
      std::snprintf(text, sizeof text, "%.*f", static_cast<int>(random.below(18)), bound);
      std::string near = text;
      if (near.find('.') == near.npos) near += '.';
      while (near.size() - near.find('.') <= 17 && random.below(4) != 0)
        near += static_cast<char>('0' + random.below(10));
      if (near.back() == '.') near += '0';
      const double read = std::strtod(near.c_str(), nullptr);
      if (takes(states, near))
        CHECK_MESSAGE((side == bound_side::low ? read > bound : read < bound), near);
    }
    // The next double in its fewest digits is taken.
    char next[400];
    const double beyond = std::nextafter(bound, side == bound_side::low ? 1e300 : -1e300);
    const auto end = std::to_chars(next, next + sizeof next, beyond, std::chars_format::fixed).ptr;
    if (std::abs(bound) > 1)
      CHECK_MESSAGE(takes(states, {next, static_cast<size_t>(end - next)}), bound);
  }
}

TEST_CASE("one bound is enough") {
  auto positive = states_of(number_form::integer, {decimal::from(1), {}});
  CHECK(takes(positive, "1"));
  CHECK(takes(positive, "123456789"));
  CHECK_FALSE(takes(positive, "0"));
  CHECK_FALSE(takes(positive, "-5"));
  auto negative =
      states_of(number_form::any, {{}, bound_of(0, number_form::any, bound_side::high, true)});
  CHECK(takes(negative, "-0.001"));
  CHECK(takes(negative, "-1000000"));
  CHECK_FALSE(takes(negative, "0"));
  CHECK_FALSE(takes(negative, "-0"));
  CHECK_FALSE(takes(negative, "0.5"));
}

TEST_CASE("bounds between which nothing is allow no text") {
  for (const auto& bounds : {between(5, 4), between(0.25, 0.75), between(-0.75, -0.25)}) {
    CHECK_FALSE(any_within(number_form::integer, bounds));
    CHECK_THROWS_AS(states_of(number_form::integer, bounds), model::grammar_error);
  }
  for (const auto& [low, high] :
       {std::pair{-0.75, -0.25}, {-0.5, 0.5}, {0.25, 0.75}, {1.0, 1.0}, {-1.5, 2.0}}) {
    CHECK(any_within(number_form::any, between(low, high)));
    CHECK(any_within(number_form::any, between(high, low)) == (low == high));
  }
  number_bounds open{decimal::from(1), bound_of(1, number_form::any, bound_side::high, true)};
  CHECK_THROWS_AS(states_of(number_form::any, open), model::grammar_error);
}

TEST_CASE("decimals are read as JSON has them") {
  const auto d = decimal::from(json_value(-12.5));
  REQUIRE(d);
  CHECK(d->negative);
  CHECK(d->whole == 12);
  CHECK(d->fraction == "5");
  CHECK_FALSE(decimal::from(json_value(-0.0))->negative);
  CHECK(decimal::from(json_value(1e-3))->fraction == "001");
  CHECK_FALSE(decimal::from(json_value(1e300)));
  CHECK_FALSE(decimal::from(json_value(UINT64_MAX)));
  CHECK_FALSE(decimal::from(json_value("1")));
}
