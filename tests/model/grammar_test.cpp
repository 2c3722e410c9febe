#include "model/grammar/grammar.hpp"

#include "tests/model/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::grammar_error;
using model::grammar_states;
using tests::states_of;
using tests::takes;

namespace {

/// Rounds and square brackets that nest, with a `1` inside.
grammar_states brackets() {
  return states_of([](grammar& g, auto next) {
    const auto rule = g.rule();
    const auto inner = [&](std::string_view open, std::string_view close) {
      return g.text(open, g.call(rule, g.text(close, g.end())));
    };
    g.begin(rule, g.choice({inner("(", ")"), inner("[", "]"), g.text("1", g.end())}));
    return g.call(rule, next);
  });
}

} // namespace

TEST_CASE("a grammar takes its texts and no beginnings or more of them") {
  auto states = states_of([](grammar& g, auto next) {
    return g.choice({g.text("yes", next), g.text("yesterday", next), g.text("no", next)});
  });
  for (const auto* text : {"yes", "yesterday", "no"}) CHECK(takes(states, text));
  for (const auto* text : {"", "y", "ye", "yest", "yess", "nope", "yesno"})
    CHECK_FALSE(takes(states, text));
}

TEST_CASE("rules nest, and close in the order they were opened") {
  auto states = brackets();
  for (const auto* text : {"1", "(1)", "[([1])]"}) CHECK(takes(states, text));
  for (const auto* text : {"(1", "(1]", "[(1])", "()", "1)"}) CHECK_FALSE(takes(states, text));
}

TEST_CASE("rules nest as deep as is allowed and no deeper") {
  auto states = brackets();
  const auto nested = [&](size_t n) {
    return takes(states, std::string(n, '(') + "1" + std::string(n, ')'));
  };
  CHECK(nested(grammar_states::depth_max - 1));
  CHECK_FALSE(nested(grammar_states::depth_max + 1));
  CHECK(takes(states, "(1)")); // still
}

TEST_CASE("a rule that ends by calling another one opens nothing for it") {
  // a, then the same again: as long as one likes, without nesting.
  auto states = states_of([](grammar& g, auto next) {
    const auto rule = g.rule();
    g.begin(rule, g.text("a", g.choice({g.call(rule, g.end()), g.end()})));
    return g.call(rule, next);
  });
  CHECK(takes(states, std::string(10 * grammar_states::depth_max, 'a')));
}

TEST_CASE("repeats count") {
  for (const uint32_t min : {0u, 1u, 7u})
    for (const uint32_t max : {1u, 7u, 17u, grammar::unbounded}) {
      if (max < min) continue;
      auto states = states_of([&](grammar& g, auto next) {
        const auto rule = g.rule();
        g.begin(rule, g.choice({g.text("ab", g.end()), g.text("c", g.end())}));
        return g.repeat(rule, min, max, g.text(".", next));
      });
      for (uint32_t n = 0; n < 30; ++n) {
        std::string text;
        for (uint32_t i = 0; i < n; ++i) text += i % 3 == 1 ? "c" : "ab";
        CAPTURE(min);
        CAPTURE(max);
        CAPTURE(n);
        CHECK(takes(states, text + ".") == (n >= min && n <= max));
      }
    }
}

TEST_CASE("a repeat of a rule that may be empty ends") {
  auto states = states_of([](grammar& g, auto next) {
    const auto rule = g.rule();
    g.begin(rule, g.maybe(g.text("a", g.end()), g.end()));
    return g.repeat(rule, 2, grammar::unbounded, next);
  });
  CHECK(takes(states, ""));
  CHECK(takes(states, "aaaaa"));
}

TEST_CASE("what cannot be spelt to its end is not begun") {
  auto available = tests::all_bytes();
  available.reset('z');
  auto states = states_of(
      [](grammar& g, auto next) {
        return g.choice({g.text("az", next), g.text("ab", next)});
      },
      available);
  CHECK(takes(states, "ab"));
  CHECK_FALSE(takes(states, "az"));
  CHECK_THROWS_WITH_AS(
      states_of([](grammar& g, auto next) { return g.text("az", next); }, available),
      doctest::Contains("no text"), grammar_error);
}

TEST_CASE("a rule that needs itself for ever allows no text") {
  CHECK_THROWS_AS(states_of([](grammar& g, auto next) {
                    const auto rule = g.rule();
                    g.begin(rule, g.text("a", g.call(rule, g.text("b", g.end()))));
                    return g.call(rule, next);
                  }),
                  grammar_error);
}

TEST_CASE("a grammar that would be too large is refused while it is built") {
  grammar g;
  CHECK_THROWS_WITH_AS(
      [&] {
        auto at = g.end();
        for (size_t i = 0; i <= grammar::nodes_max; ++i) at = g.text("a", at);
      }(),
      doctest::Contains("too large"), grammar_error);
}

// Of the text so far nothing may be known but its last 20 characters: 2^20 states.
TEST_CASE("a grammar of very many states gets slower and not larger") {
  auto states = states_of([](grammar& g, auto next) {
    const auto a_or_b = model::byte_set{}.set('a').set('b');
    auto tail = next;
    for (int i = 0; i < 20; ++i) tail = g.bytes(a_or_b, tail);
    const auto again = g.choice();
    g.branch(again, {g.bytes(a_or_b, again), g.text("a", tail)});
    return again;
  });
  tests::splitmix random{54};
  for (int round = 0; round < 20; ++round) {
    const auto before = states.here();
    std::string text;
    for (int i = 0; i < 2'000; ++i) text += random.below(2) == 0 ? 'a' : 'b';
    states.begin_steps();
    CHECK(takes(states, text) == (text[text.size() - 21] == 'a'));
    states.forget(before);
  }
  CHECK(states.full() == false);
  CHECK(states.memory_bytes() < (64u << 20));
}

TEST_CASE(
    "a grammar that leaves a text at too many places at once is refused, and goes on to work") {
  // (a{0,1000}){0,1000}: how often, and how many of the last one, is open after each a.
  auto states = states_of([](grammar& g, auto next) {
    const auto inner = g.rule(), outer = g.rule();
    g.begin(inner, g.text("a", g.end()));
    g.begin(outer, g.repeat(inner, 1, 1000, g.end()));
    return g.choice({g.text("b", next), g.repeat(outer, 1, 1000, next)});
  });
  CHECK_THROWS_WITH_AS(takes(states, std::string(1'000, 'a')), doctest::Contains("too ambiguous"),
                       grammar_error);
  CHECK(takes(states, "b"));
}
