#include "scheduler/planner/scaling_replay.hpp"

#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/scaling_text.hpp"
#include "tests/scheduler/scaling_looks.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace lamella::scheduler;
using lamella::tests::good_look;

namespace {

std::vector<replayed_look> replay(const std::string& text) {
  std::istringstream in{text};
  return replay_scaling(in);
}

/// A line of a look at that time, with so much KV in use.
std::string line_of(double at, double kv_used) {
  auto x = good_look();
  x.at = scaling_seconds{at};
  x.kv_used = kv_used;
  return text_of(x) + "\n";
}

std::string error_of(const std::string& text) {
  try {
    replay(text);
  } catch (const table_error& e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("a written look gives the decision that it gave when it was taken") {
  scaling_settings s;
  s.kv_high = 0.7;
  scaling_policy policy{s};
  std::string text = text_of(s) + "\n\n";
  std::vector<scaling_decision> decisions;
  for (int i = 0; i < 200; ++i) {
    auto x = good_look();
    x.at = scaling_seconds{i * 0.7};
    x.kv_used = 500 + 3.1 * (i % 90);
    decisions.push_back(policy.look(x));
    text += text_of(x) + "\n";
  }
  const auto again = replay(text);
  REQUIRE(again.size() == decisions.size());
  size_t steps = 0;
  for (size_t i = 0; i < again.size(); ++i) {
    CHECK(again[i].decision == decisions[i]);
    steps += again[i].decision.step ? 1 : 0;
  }
  CHECK(steps > 0);
}

TEST_CASE("settings may be changed to see what they would have done") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += line_of(i, 750);
  for (const auto& x : replay(text)) CHECK_FALSE(x.decision.step);
  std::istringstream in{text};
  size_t steps = 0;
  for (const auto& x : replay_scaling(in, [](scaling_settings& s) { s.kv_high = 0.7; }))
    steps += x.decision.step ? 1 : 0;
  CHECK(steps > 0);
}

TEST_CASE("a file that is no scaling trace is refused with the line") {
  CHECK(replay("").empty());
  CHECK(error_of(line_of(1, 1) + "\nnonsense\n").starts_with("line 3: "));
  CHECK(error_of(line_of(2, 1) + line_of(1, 1))
        == "line 2: at_seconds is earlier than that of the look before");
}
