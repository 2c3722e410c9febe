// What it costs to read grammars, counted in parts and bytes that are looked at.
#include "tests/model/grammar/text/grammar_rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace lamella;

namespace {

uint64_t work_of(const std::string& text) {
  model::grammar g;
  model::grammar_of_text(g, text, g.end());
  return g.work();
}

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// A rule for each number up to `last`, with its number in place of `#` and the next one in place
/// of `+`.
std::string rules(const std::string& rule, size_t last) {
  std::string all;
  for (size_t i = 0; i <= last; ++i)
    for (const char c : rule)
      all += c == '#' ? std::to_string(i) : c == '+' ? std::to_string(i + 1) : std::string(1, c);
  return all;
}

} // namespace

TEST_CASE("an expression of a terminal is read once, however often the terminal is named") {
  const auto grammar = [](size_t uses) {
    return "start: A\nB: /" + std::string(1'000, 'a') + "/\nA: " + repeated("B ", uses) + "\n";
  };
  CHECK(work_of(grammar(1'800)) - work_of(grammar(1'000)) < 50'000);
}

TEST_CASE("terminals that are other terminals are followed once") {
  const auto grammar = [](size_t uses) {
    return rules("AB#: AB+\n", 300) + "AB301: \"x\"\nstart: " + repeated("AB0 ", uses) + "\n";
  };
  CHECK(work_of(grammar(1'800)) - work_of(grammar(1'000)) < 50'000);
}

TEST_CASE("rules that are empty by way of others are found once") {
  // Each needs the one before it, and `all` needs each.
  const auto grammar = [](size_t count) {
    return "root ::= \"x\" all\nr0 ::= \"\"\n" + rules("r+ ::= r# r# | \"y\"\n", count)
           + "all ::= " + repeated("r1 ", 5 * count) + rules("r# ", count) + "\n";
  };
  const auto one = work_of(grammar(300));
  CHECK(one > 300 * 5);
  CHECK(work_of(grammar(600)) < 3 * one);
  auto states = tests::states_of_text("root ::= \"x\" r9\nr0 ::= \"\"\n"
                                      + rules("r+ ::= r# r# | \"y\"\n", 8));
  CHECK(tests::takes(states, "x"));
  CHECK(tests::takes(states, "xyy"));
  CHECK_FALSE(tests::takes(states, ""));
}

TEST_CASE("the look for places of a text ends after so many nodes") {
  // 64 rules reach 1,400 bytes, each of which leads to a chain of 1,500 rules: 134 million nodes.
  // Counts go up along the nodes, so what is used comes before its use.
  const auto text = "x0 ::= \"c\"\n" + rules("x+ ::= x#\n", 1'499)
                    + "y0 ::= " + rules("[a#] x1500 | ", 1'399) + "\"b\"\n"
                    + rules("y+ ::= y# | y#\n", 63) + "root ::= y64\n";
  model::grammar g;
  g.begin(0, model::grammar_of_text(g, text, g.end()));
  CHECK(model::runnable_grammar{std::move(g), tests::all_bytes()}.visits == 2'000'000);
}
