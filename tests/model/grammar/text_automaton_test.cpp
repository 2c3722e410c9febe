#include "model/grammar/text_automaton.hpp"

#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::regular_expression;
using model::text_automaton;

namespace {

text_automaton of(std::string_view expression,
                  regular_expression::match what = regular_expression::match::whole) {
  return text_automaton::of(regular_expression::parse(expression), what);
}

text_automaton both(const text_automaton& a, const text_automaton& b) {
  const std::vector<text_automaton> all{a, b};
  return text_automaton::intersection(all);
}

} // namespace

TEST_CASE("an automaton has the texts of its expression") {
  const auto x = of("(ab|c)*d{2,3}é?");
  for (const auto* text : {"dd", "ababcddd", "cddé"}) CHECK_MESSAGE(x.matches(text), text);
  for (const auto* text : {"", "d", "dddd", "abdd\xC3", "ddéé"})
    CHECK_MESSAGE(!x.matches(text), text);
  const auto somewhere = of("^a|b$|c", regular_expression::match::somewhere);
  for (const auto* text : {"axx", "xxb", "xcx"}) CHECK_MESSAGE(somewhere.matches(text), text);
  for (const auto* text : {"", "xa", "bx"}) CHECK_MESSAGE(!somewhere.matches(text), text);
}

TEST_CASE("automata are intersected, complemented, and know their lengths") {
  const auto letters = of("[a-z]+");
  const auto few = both(letters, text_automaton::of_length(2, 3));
  CHECK(few.matches("ab"));
  CHECK(few.matches("abc"));
  CHECK_FALSE(few.matches("a"));
  CHECK_FALSE(few.matches("abcd"));
  CHECK_FALSE(few.matches("a1"));
  CHECK(few.lengths() == std::pair{2u, 3u});
  CHECK(letters.lengths() == std::pair{1u, grammar::unbounded});
  CHECK(both(letters, of("[0-9]+")).empty());
  CHECK_FALSE(both(letters, of("[0-9]+")).lengths());
  const auto others = text_automaton::of_texts({"a", "ab", "€"}).complement();
  for (const auto* text : {"", "b", "abc", "€€"}) CHECK_MESSAGE(others.matches(text), text);
  for (const auto* text : {"a", "ab", "€"}) CHECK_MESSAGE(!others.matches(text), text);
}

TEST_CASE("a product tells which of its automata a text is one of") {
  const std::vector<text_automaton> all{of("a.*"), of(".*b"), of("[ab]*")};
  const auto x = text_automaton::product(all);
  CHECK(x.mark_of("ab") == 7);
  CHECK(x.mark_of("axb") == 3);
  CHECK(x.mark_of("x") == 0);
  CHECK(x.mark_of("") == 4);
}

TEST_CASE("an automaton becomes nodes, in JSON's spelling") {
  const auto x = both(of(".*\".*"), text_automaton::of_length(0, 3));
  auto states = tests::states_of([&](grammar& g, auto next) {
    return g.text("\"",
                  x.compile(g, model::spelling::json, [&](auto) { return g.text("\"", next); }));
  });
  CHECK(tests::takes(states, R"("\"")"));
  CHECK(tests::takes(states, R"("a\"é")"));
  CHECK_FALSE(tests::takes(states, R"("ab")"));
  CHECK_FALSE(tests::takes(states, R"("ab\"c")"));
}

TEST_CASE("an automaton of too many states is refused") {
  CHECK_THROWS_AS(of("(a|b)*a(a|b){30}"), model::automaton_error);
  CHECK_THROWS_AS(of("((a{1,90}){1,90}){1,90}"), model::automaton_error);
  CHECK_THROWS_AS(text_automaton::of_length(0, 1'000'000), model::automaton_error);
}

TEST_CASE("an automaton of too many edges is refused, and a smaller one costs about what it has") {
  const auto behind = [](uint32_t any, size_t characters) {
    return of(".{" + std::to_string(any) + "}" + tests::class_of(characters) + "$",
              regular_expression::match::somewhere);
  };
  CHECK_THROWS_AS(behind(600, 800), model::automaton_error);
  const auto x = behind(300, 400); // each of whose states is a set of up to 300
  CHECK(x.edges() > 300 * 800);
  CHECK(x.work() < 30 * x.edges());
}
