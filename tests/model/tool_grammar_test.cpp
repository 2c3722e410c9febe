#include "model/grammar/tool_grammar.hpp"

#include "model/grammar/json_schema.hpp"
#include "tests/model/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::tool_calls;
using tests::takes;

namespace {

const auto tags = model::tool_dialect_of("");
const auto bare = model::tool_dialect_of("tools ipython");

struct tools {
  model::json_value schema = model::parse_json(
      R"({"type":"object","properties":{"q":{"type":"integer"}},"required":["q"]})");
  std::vector<model::tool_signature> list{{"find", &schema}, {"now"}};

  model::grammar_states must(const model::tool_dialect& d, tool_calls n = tool_calls::many) const {
    return tests::states_of(
        [&](grammar& g, auto next) { return model::tool_calls_grammar(g, list, d, n, next); });
  }
  model::grammar_states may(const model::tool_dialect& d) const {
    return tests::states_of([&](grammar& g, auto next) {
      return model::text_or_tool_calls(g, list, d, tool_calls::many, next);
    });
  }
};

const std::string find =
    "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": 7}}\n</tool_call>";
const std::string now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

} // namespace

TEST_CASE_FIXTURE(tools, "calls are those of the tools, with arguments of their schema") {
  auto states = must(tags);
  for (const auto& text : {find, now, find + "\n" + now + "\n" + find})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto& text :
       {std::string{}, std::string{"text"}, "text " + find, find + now, find + " more",
        std::string{"<tool_call>\n{\"name\": \"find\", \"arguments\": {}}\n</tool_call>"},
        std::string{"<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"}})
    CHECK_MESSAGE(!takes(states, text), text);
  auto once = must(tags, tool_calls::one);
  CHECK(takes(once, find));
  CHECK_FALSE(takes(once, find + "\n" + now));
}

TEST_CASE_FIXTURE(tools, "text is free up to the mark of a call") {
  auto states = may(tags);
  for (const auto& text :
       {std::string{}, std::string{"any text < at all, <tool_cal"}, std::string{"<<tool_call>x"},
        std::string{"<tool_call><tool_call>"}, "<<tool_call>\n" + find.substr(12), now,
        "Well.\n" + find + "\n" + now, std::string{"\xC3\xA9"}})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto& text : {std::string{"<tool_call>\n"}, std::string{"a<tool_call>\nb"},
                           find + "\nand text", find + find})
    CHECK_MESSAGE(!takes(states, text), text);
}

TEST_CASE_FIXTURE(tools, "where nothing marks a call, the first character tells") {
  auto states = may(bare);
  for (const auto* text : {"", "text {\"name\"", "{\"name\": \"now\", \"parameters\": {}}",
                           " \n{\"name\": \"find\", \"parameters\": {\"q\":1}}"})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto* text : {"{", "{\"a\": 1}", "{\"name\": \"now\", \"parameters\": {}} x"})
    CHECK_MESSAGE(!takes(states, text), text);
}

TEST_CASE_FIXTURE(tools, "arguments that no grammar can promise are any object, unless strict") {
  schema = model::parse_json(R"({"type":"object","patternProperties":{"a":{}}})");
  auto states = must(tags);
  CHECK(
      takes(states, "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"b\":[1]}}\n</tool_call>"));
  list[0].strict = true;
  list[0].pointer = "tools[0].function.parameters";
  CHECK_THROWS_WITH_AS(must(tags),
                       doctest::Contains("tools[0].function.parameters/patternProperties"),
                       model::json_schema_error);
}
