#include "model/chat/tool_grammar.hpp"

#include "model/grammar/json_schema/json_schema.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::tool_calls;
using tests::takes;

namespace {

const auto tags = model::tool_dialect_of("", "");
const auto bare = model::tool_dialect_of(R"({"name": "f", "parameters": {}})", "f");

struct tools {
  json_value schema =
      parse_json(R"({"type":"object","properties":{"q":{"type":"integer"}},"required":["q"]})");
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

TEST_CASE_FIXTURE(tools, "a line feed behind a call promises no other one, nor does a result") {
  for (const bool required : {false, true}) {
    auto states = required ? must(tags) : may(tags);
    for (const auto& text : {find + "\n", find + "\n" + now + "\n", find + "\n<tool_response>"})
      CHECK_MESSAGE(takes(states, text), text);
    for (const auto& text : {find + "\n\n", find + "\n<tool_resp", find + "\n<tool_response>\n",
                             find + "\n<tool_response>x", find + "\nmore"})
      CHECK_MESSAGE(!takes(states, text), text);
  }
}

TEST_CASE_FIXTURE(tools, "a model that draws a line feed wherever it may can end") {
  for (const bool required : {false, true}) {
    auto states = required ? must(tags) : may(tags);
    auto at = states.start();
    for (const char byte : find) at = states.step(at, static_cast<uint8_t>(byte));
    int feeds = 0;
    for (auto next = at; next != model::grammar_states::dead; ++feeds) {
      at = next;
      next = states.step(at, '\n');
      REQUIRE(feeds < 10);
    }
    CHECK(feeds > 1);
    CHECK(states.accepts(at));
  }
}

TEST_CASE_FIXTURE(tools, "arguments are an object, whatever else their schema takes") {
  const auto call_of = [](const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"find\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  struct row {
    const char* schema;
    const char* object;
  };
  for (const auto& x :
       {row{"{}", R"({"a":[1]})"}, row{R"({"description":"no arguments"})", "{}"},
        row{R"({"type":["object","null"]})", R"({"b":null})"},
        row{R"({"enum":["a",{"k":1},null]})", R"({"k":1})"},
        row{R"({"anyOf":[{"type":"string"},{"type":"object","properties":{"q":{}}}]})", "{}"},
        row{R"({"$ref":"#/$defs/any","$defs":{"any":{"anyOf":[{"$ref":"#/$defs/none"},
               {"$ref":"#/$defs/some"}]},"none":{"type":"null"},"some":{"type":"object"}}})",
            R"({"c":2})"},
        row{R"({"type":"object","propertyDependencies":{}})", R"({"d":{}})"}}) {
    CAPTURE(x.schema);
    schema = parse_json(x.schema);
    auto states = must(tags);
    CHECK(takes(states, call_of(x.object)));
    for (const auto* other : {"null", "5", "\"a\"", "[1]", "true"})
      CHECK_MESSAGE(!takes(states, call_of(other)), other);
  }
}

TEST_CASE_FIXTURE(tools, "a schema that takes no object is refused with the name of its field") {
  list[0].pointer = "tools[0].function.parameters";
  for (const auto* none :
       {R"({"type":"string"})", R"({"type":["array","null"]})", R"({"enum":["a",1]})",
        R"({"const":null})", R"({"anyOf":[{"type":"string"},{"type":"integer"}]})",
        R"_({"type":"string","pattern":"a(?=b)"})_"})
    for (const bool strict : {false, true}) {
      CAPTURE(none);
      schema = parse_json(none);
      list[0].strict = strict;
      try {
        must(tags);
        FAIL("it is taken");
      } catch (const model::json_schema_error& e) {
        CHECK(e.pointer.starts_with("tools[0].function.parameters"));
      }
    }
}

TEST_CASE_FIXTURE(tools,
                  "a form with arguments one by one takes no schema without objects either") {
  const auto dialect = model::tool_dialect_of("<tool_call>\n<function=f>\n<parameter=q>\n1\n"
                                              "</parameter>\n</function>\n</tool_call>",
                                              "f");
  REQUIRE(dialect.parameters);
  list[0].pointer = "tools[0].function.parameters";
  for (const auto* none :
       {R"({"type":"string"})", R"({"type":["array","null"]})", R"({"enum":["a",1]})",
        R"({"const":null})", R"({"anyOf":[{"type":"string"},{"type":"integer"}]})"}) {
    CAPTURE(none);
    schema = parse_json(none);
    try {
      must(dialect);
      FAIL("it is taken");
    } catch (const model::json_schema_error& e) {
      CHECK(e.pointer.starts_with("tools[0].function.parameters"));
    }
  }
  for (const auto* some : {R"({})", R"({"description":"no arguments"})",
                           R"({"anyOf":[{"type":"string"},{"type":"object"}]})"}) {
    CAPTURE(some);
    schema = parse_json(some);
    auto states = must(dialect);
    CHECK(takes(states, "<tool_call>\n<function=find>\n</function>\n</tool_call>"));
  }
}

TEST_CASE_FIXTURE(tools, "parameters one by one refer to all of their schema") {
  const auto dialect = model::tool_dialect_of("<tool_call>\n<function=f>\n<parameter=q>\n1\n"
                                              "</parameter>\n</function>\n</tool_call>",
                                              "f");
  schema = parse_json(R"({"type":"object","required":["a","b"],"$defs":{"n":{"type":"integer"}},
    "properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/properties/a"}}})");
  auto states = must(dialect);
  const auto call = [](const std::string& a, const std::string& b) {
    return "<tool_call>\n<function=find>\n<parameter=a>\n" + a + "\n</parameter>\n<parameter=b>\n"
           + b + "\n</parameter>\n</function>\n</tool_call>";
  };
  CHECK(takes(states, call("7", "8")));
  CHECK_FALSE(takes(states, call("7", "true")));
}

TEST_CASE_FIXTURE(tools, "a line feed behind a call of a list with an end may be followed by it") {
  const auto dialect = model::tool_dialect_of(
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "f");
  REQUIRE(dialect.between == "\n");
  REQUIRE(dialect.end == "<｜tool▁calls▁end｜>");
  auto states = must(dialect);
  const std::string begin = "<｜tool▁calls▁begin｜>", end = "<｜tool▁calls▁end｜>";
  const std::string one =
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>";
  for (const auto& text : {begin + one + end, begin + one + "\n" + one + end,
                           begin + one + "\n" + end, begin + one + "\n" + one + "\n" + end})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto& text : {begin + one, begin + one + "\n", begin + one + "\n\n" + end})
    CHECK_MESSAGE(!takes(states, text), text);
}

TEST_CASE_FIXTURE(tools, "text is free up to the mark of a call") {
  auto states = may(tags);
  for (const auto& text : {std::string{}, std::string{"any text < at all, <tool_cal"},
                           std::string{"<<tool_calls>x"}, "<<tool_call>\n" + find.substr(12), now,
                           "Well.\n" + find + "\n" + now, std::string{"\xC3\xA9"}})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto& text :
       {std::string{"<tool_call>\n"}, std::string{"a<tool_call>\nb"}, std::string{"<<tool_call>x"},
        std::string{"<tool_call><tool_call>"}, find + "\nand text", find + find})
    CHECK_MESSAGE(!takes(states, text), text);
}

TEST_CASE_FIXTURE(tools, "a model that has written the first mark of its form writes a call") {
  struct row {
    const char *written, *mark, *behind;
  };
  for (const auto& x :
       {row{R"([TOOL_CALLS] [{"name": "f", "arguments": {}}])", "[TOOL_CALLS]", "["},
        row{R"(<|tool_call|>[{"name": "f", "arguments": {}}])", "<|tool_call|>", "["},
        row{"<tool_calls>[\n{\"name\": \"f\", \"arguments\": {}}\n]</tool_calls>", "<tool_calls>",
            "[\n"},
        row{"<tool_call>\n<function=f>\n<parameter=q>\n1\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>", "\n<function="},
        row{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
            "<｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"},
        row{"<function=f>{}</function>", "<function=", ""}}) {
    CAPTURE(x.written);
    const auto dialect = model::tool_dialect_of(x.written, "f");
    CHECK(dialect.mark() == x.mark);
    CHECK(dialect.behind_mark() == x.behind);
    auto states = may(dialect);
    CHECK_FALSE(takes(states, x.mark));
    for (const auto* other : {" ", "{", "So", "\n\n"})
      CHECK_FALSE(takes(states, std::string{x.mark} + other));
  }
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
  schema = parse_json(R"({"type":"object","propertyDependencies":{}})");
  auto states = must(tags);
  CHECK(
      takes(states, "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"b\":[1]}}\n</tool_call>"));
  list[0].strict = true;
  list[0].pointer = "tools[0].function.parameters";
  CHECK_THROWS_WITH_AS(must(tags),
                       doctest::Contains("tools[0].function.parameters/propertyDependencies"),
                       model::json_schema_error);
}
