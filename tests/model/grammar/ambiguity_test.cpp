// Which grammars are refused because texts of them may be at too many places at once, and which
// ones only look like it.
#include "model/grammar/ambiguity.hpp"

#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace lamella;
using model::grammar;
using model::grammar_error;

namespace {

template <class Build> std::shared_ptr<const model::runnable_grammar> runnable(Build build) {
  grammar g;
  g.begin(0, build(g, g.end()));
  return std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes());
}

auto of_expression(const std::string& regex) {
  return runnable([&](grammar& g, auto next) {
    return model::regular_expression::parse(regex).compile(
        g, model::regular_expression::match::whole, model::spelling::plain, next);
  });
}

auto of_schema(const std::string& schema) {
  const auto value = parse_json(schema, {.depth = 64});
  return runnable([&](grammar& g, auto next) { return json_schema_grammar(g, value, next); });
}

/// A list of two kinds of objects that begin alike, each with such a list within.
const std::string alike = R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[
  {"type":"object","properties":{"next":{"$ref":"#/$defs/a"},"x":{"type":"null"}},"required":["next"],
   "additionalProperties":false},
  {"type":"object","properties":{"next":{"$ref":"#/$defs/a"},"y":{"type":"null"}},"required":["next"],
   "additionalProperties":false},{"type":"integer"}]}}})";

} // namespace

TEST_CASE("counts that begin at any of many characters are refused before any text") {
  for (const auto* regex :
       {"[ab]*a[ab]{10000}", ".*a.{9000}", "x{100}[ab]*a[ab]{10000}", "(.*a.{8200}){2,40}",
        "(x{10,20}y){100}[ab]*a[ab]{10000}", ".{1,9000}\\d.{8500,9000}", "([ab]*a[ab]{10000}c){3}",
        "[ab]{9000}[ab]*a[ab]{9000}", "(a|b|ab)*a[ab]{9000}", "(.*a.{8200,8250}){2,400}"}) {
    CAPTURE(std::string{regex});
    CHECK_THROWS_WITH_AS(model::refuse_ambiguous(of_expression(regex)),
                         doctest::Contains("too ambiguous"), grammar_error);
  }
}

TEST_CASE("what is refused as too ambiguous is named by a text") {
  CHECK_THROWS_WITH_AS(model::refuse_ambiguous(of_expression("x{100}[bc]*b[bc]{10000}")),
                       doctest::Contains(R"(an output such as "...bb..." more)"), grammar_error);
}

TEST_CASE("counts that leave a text at few places are not refused, however large they are") {
  for (const auto* regex :
       {"(a{1,1000}){1,1000}", "(a{1,1000}){1000}", ".{0,5000}\\d.{0,5000}",
        "[ab]{0,300}a[ab]{10000}", "[ab]*a[ab]{5000}", ".{10000}", "(.{1,80}\\n){1000}",
        "(a{2,3}){3000,4000}b", "[^,]{3000,9000}(,[^,]{3000,9000}){9000}",
        "(the|[a-h ]{3,30}){1,20}[d-w]{5}", "(foo|[a-z])*foo[a-z]{9000}", "(.*a.{50,60}){2,40}"}) {
    CAPTURE(std::string{regex});
    CHECK_NOTHROW(model::refuse_ambiguous(of_expression(regex)));
  }
}

TEST_CASE("schemas are refused as ambiguous where alternatives begin alike within each other") {
  CHECK_THROWS_WITH_AS(model::refuse_ambiguous(of_schema(alike)),
                       doctest::Contains("start alternatives with"), grammar_error);
  CHECK_THROWS_AS(model::refuse_ambiguous(of_schema(
                      R"({"type":"object","properties":{"id":{"type":"string","minLength":3000},
                          "text":{"type":"string","pattern":"^.*a.{9000}$"}}})")),
                  grammar_error);
  for (
      const auto* schema :
      {R"({"type":"string","minLength":6000,"maxLength":20000})",
       R"({"type":"array","minItems":3000,"maxItems":9000,"items":{"type":"object","required":["a"],
            "properties":{"a":{"type":"string","minLength":6000,"maxLength":20000}}}})",
       R"({"type":"object","minProperties":1,"additionalProperties":{}})", "{}",
       R"({"type":"array","uniqueItems":false,"items":{"anyOf":[{"type":"integer"},
            {"type":"number"},{"type":"string"},{"type":"array"},{"type":"object"}]}})"})
    CHECK_NOTHROW(model::refuse_ambiguous(of_schema(schema)));
}

TEST_CASE("a search that may do nothing refuses nothing") {
  CHECK_NOTHROW(model::refuse_ambiguous(of_expression(".*a.{9000}"), 0));
}

TEST_CASE("where no more places are found the search ends early") {
  // Free values nest without an end, and are at few places of a node however deep they are.
  const auto work = model::refuse_ambiguous(of_schema(R"({"type":"array"})"));
  CAPTURE(work);
  CHECK(work < 120'000);
}

TEST_CASE("bytes are of one class where no place of a grammar tells them apart") {
  const auto g = of_expression("a[b-z]*|[x-z]1");
  const auto& classes = g->classes;
  CHECK(classes.of['b'] == classes.of['w']);
  CHECK(classes.of['x'] == classes.of['z']);
  CHECK(classes.of['x'] != classes.of['w']);
  CHECK(classes.of['a'] != classes.of['b']);
  CHECK(classes.of['!'] == classes.of[0xFF]);
  CHECK(classes.first.size() == 5); // a, b to w, x to z, 1, all others
  for (size_t c = 0; c < classes.first.size(); ++c) CHECK(classes.of[classes.first[c]] == c);
  const auto ways = g->rules.all_ways();
  for (size_t i = 0; i < ways.size(); ++i) CHECK(ways[i].set[classes.first_of[i]]);
}

TEST_CASE("the search ends after a bound of work, whatever states cost to be made") {
  constexpr auto one_state =
      20 * model::grammar_states::visit_work * uint64_t{model::grammar_states::visits_max};
  const auto work_of = [](const char* text) {
    return model::refuse_ambiguous(
        runnable([&](grammar& g, auto next) { return model::grammar_of_text(g, text, next); }));
  };
  const auto dear = work_of("root ::= (\"x\" (root | e{1,5}) root?)* | \"e\"\n"
                            "e ::= \"e\" root? e{0,4} | \"x\" root");
  CHECK(dear >= model::ambiguity_states_work_max); // it had more to do
  CHECK(dear < model::ambiguity_states_work_max + one_state);
  CHECK(work_of("root ::= (\"x\" root)* \"e\"") < 100'000);
}
