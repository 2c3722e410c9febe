#include "model/grammar/grammar.hpp"

#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

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

TEST_CASE("rules that are begun one behind the other are productive if the last one is") {
  constexpr size_t rules = 200;
  grammar g;
  std::vector<grammar::rule_id> all;
  for (size_t i = 0; i < rules; ++i) all.push_back(g.rule());
  for (size_t i = 0; i + 1 < rules; ++i)
    g.begin(all[i], g.text("(", g.call(all[i + 1], g.text(")", g.end()))));
  g.begin(all.back(), g.text("x", g.end()));
  const auto endless = g.rule();
  g.begin(endless, g.text("x", g.call(endless, g.end())));
  g.begin(0, g.call(all[0], g.end()));
  auto bytes = model::bytes_between('(', ')');
  CHECK_FALSE(model::productive_nodes(g, bytes)[g.first_of(all[0])]);
  bytes.set('x');
  const auto good = model::productive_nodes(g, bytes);
  for (const auto rule : all) CHECK(good[g.first_of(rule)]);
  CHECK(good[g.first_of(0)]);
  CHECK_FALSE(good[g.first_of(endless)]);
}

TEST_CASE("sets of bytes are gone through in their order") {
  for (const auto& [low, high] : {std::pair{0, 255}, {0, 0}, {63, 64}, {65, 65}, {128, 200}}) {
    const auto set = model::bytes_between(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
    std::vector<int> found;
    model::each_byte(set, [&](uint8_t b) { found.push_back(b); });
    std::vector<int> said;
    for (int b = low; b <= high; ++b) said.push_back(b);
    CHECK(found == said);
    CHECK(model::is_one_byte(set) == (low == high));
  }
  CHECK_FALSE(model::is_one_byte({}));
  CHECK_FALSE(model::is_one_byte(model::byte_set{}.set(1).set(129)));
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

TEST_CASE("texts of a list share what they begin and end with, and each is taken whole") {
  std::vector<std::string> all{"",      "a", "ab", "abc", "no", "not sure", "\xF0\x9F\x98\x80",
                               " space"};
  for (int i = 0; i < 500; ++i) all.push_back("class " + std::to_string(i) + " of many");
  all.push_back("ab"); // again
  grammar g;
  g.begin(0, g.texts(all, g.end()));
  CHECK(g.nodes().size() < 200); // of 9,000 bytes
  grammar_states states{std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes()),
                        256};
  for (const auto& text : all) CHECK_MESSAGE(takes(states, text), text);
  for (const auto* text :
       {"b", "abcd", "not", "class 500 of many", "class 1 of man", "class  of many"})
    CHECK_MESSAGE(!takes(states, text), text);
}

TEST_CASE("a list of too many different texts is refused while it is read") {
  std::vector<std::string> all;
  tests::splitmix random{8};
  for (int i = 0; i < 10'000; ++i) {
    auto& text = all.emplace_back();
    for (int k = 0; k < 40; ++k) text += static_cast<char>('a' + random.below(26));
  }
  grammar g;
  CHECK_THROWS_WITH_AS(g.texts(all, g.end()), doctest::Contains("too large"), grammar_error);
}

// How many of each are open after a text is told by two or three of all possible pairs of counts.
TEST_CASE("ambiguous counts are followed without limit") {
  const auto counts = [](uint32_t least_inner, uint32_t inner_max, uint32_t least, uint32_t max) {
    return states_of([=](grammar& g, auto next) {
      const auto inner = g.rule(), outer = g.rule();
      g.begin(inner, g.text("a", g.end()));
      g.begin(outer, g.repeat(inner, least_inner, inner_max, g.end()));
      return g.repeat(outer, least, max, g.text(".", next));
    });
  };
  auto states = counts(1, 1000, 1, 1000);
  for (const size_t n : {1, 999, 1000, 1001, 5000}) CHECK(takes(states, std::string(n, 'a') + "."));
  CHECK_FALSE(takes(states, "."));
  auto few = counts(2, 3, 3, 4); // 6 to 12
  for (size_t n = 0; n < 20; ++n)
    CHECK(takes(few, std::string(n, 'a') + ".") == (n >= 6 && n <= 12));
  auto empty_too = counts(0, 3, 2, 4); // 0 to 12
  for (size_t n = 0; n < 20; ++n) CHECK(takes(empty_too, std::string(n, 'a') + ".") == (n <= 12));
}

// More pairs than may be compared each with each: of those that differ in the inner count alone one
// is left.
TEST_CASE("hundreds of hundreds are at few places") {
  auto states = states_of([](grammar& g, auto next) {
    const auto inner = g.rule(), outer = g.rule();
    g.begin(inner, g.text("a", g.end()));
    g.begin(outer, g.repeat(inner, 1, 600, g.end()));
    return g.repeat(outer, 600, 600, g.text(".", next));
  });
  auto at = states.start();
  for (int i = 0; i < 1'500; ++i) {
    at = states.step(at, 'a');
    REQUIRE(states.places_of(at) <= 600);
  }
  CHECK(takes(states, std::string(1'500, 'a') + "."));
}

// Of the text so far nothing may be known but its last 20 characters: 2^20 states.
TEST_CASE("states of others are found again where one has gone on to an empty set of them") {
  const auto build = [](grammar& g, auto next) {
    const auto a_or_b = model::byte_set{}.set('a').set('b');
    auto tail = next;
    for (int i = 0; i < 20; ++i) tail = g.bytes(a_or_b, tail);
    const auto again = g.choice();
    g.branch(again, {g.bytes(a_or_b, again), g.text("a", tail)});
    return again;
  };
  grammar g;
  g.begin(0, build(g, g.end()));
  const auto shared = std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes());
  auto states = std::make_unique<grammar_states>(shared, 256);
  tests::splitmix random{54};
  std::string text;
  auto at = states->start();
  for (int i = 0; i < 40'000; ++i) {
    if (i % 1'000 == 0) {
      auto next = std::make_unique<grammar_states>(shared, 256);
      at = next->import(*states, at);
      states = std::move(next);
    }
    text += random.below(2) == 0 ? 'a' : 'b';
    at = states->step(at, static_cast<uint8_t>(text.back()));
    CHECK(states->memory_bytes() < (8u << 20));
    if (text.size() > 20) CHECK(states->accepts(at) == (text[text.size() - 21] == 'a'));
  }
}

// The characters behind each b are counted, all of them at once.
TEST_CASE("where a text is at too many places, what is allowed is still right") {
  auto states = states_of([](grammar& g, auto next) {
    const auto again = g.choice(), one = g.rule();
    g.begin(one, g.text("a", g.end()));
    const auto counted = g.repeat(one, 5'000, 5'000, g.text(".", next));
    g.branch(again, {g.bytes(tests::all_bytes(), again), g.text("b", counted)});
    return again;
  });
  auto at = states.start();
  for (int i = 0; i < 6'000; ++i) at = states.step(at, i % 2 == 0 ? 'b' : 'a');
  CHECK(states.places_of(at) <= grammar_states::places_max);
  at = states.step(at, 'b');
  for (int i = 0; i < 5'000; ++i) at = states.step(at, 'a');
  CHECK(at != grammar_states::dead);
  CHECK(takes(states, "xb" + std::string(5'000, 'a') + "."));
}

TEST_CASE("states that differ in counts far from their limits are near the same one") {
  const auto at_count = [](uint32_t min, uint32_t max, uint32_t count) {
    static std::vector<grammar_states> all;
    all.push_back(states_of([=](grammar& g, auto next) {
      const auto one = g.rule();
      g.begin(one, g.text("a", g.end()));
      return g.repeat(one, min, max, g.text(".", next));
    }));
    auto& states = all.back();
    auto at = states.start();
    for (uint32_t i = 0; i < count; ++i) at = states.step(at, 'a');
    const auto near = states.near(at);
    // What the next bytes may be is the same for 256 of them.
    auto x = at, y = near;
    for (int i = 0; i < 256; ++i) {
      CHECK(states.accepts(x) == states.accepts(y));
      CHECK((states.step(x, '.') == 0) == (states.step(y, '.') == 0));
      x = states.step(x, 'a');
      y = states.step(y, 'a');
      CHECK((x == 0) == (y == 0));
      if (x == 0) break;
    }
    return std::pair{near, near == at};
  };
  auto states = states_of([](grammar& g, auto next) {
    const auto one = g.rule();
    g.begin(one, g.text("a", g.end()));
    return g.repeat(one, 5'000, 9'000, g.text(".", next));
  });
  std::set<grammar_states::state_id> near;
  auto at = states.start();
  for (int i = 0; i < 9'000; ++i, at = states.step(at, 'a')) near.insert(states.near(at));
  // Below both limits, near the lower one, between, near the upper one.
  CHECK(near.size() <= 2 + 2 * 259);
  for (const uint32_t count : {0u, 4'700u, 4'743u, 4'744u, 4'999u, 5'000u, 8'743u, 8'744u, 9'000u})
    at_count(5'000, 9'000, count);
  CHECK(at_count(0, grammar::unbounded, 7).second);
}
