#include "net/api/output_format.hpp"

#include "net/api/messages_request.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella::net;
using namespace lamella::net::test;
using kind = output_format::kind;

namespace {

std::optional<output_format> format_of(const std::string& field) {
  const auto chat_format = parse_chat_request(chat(field), {}).params.format;
  const auto legacy_format = parse_completion_request(legacy(field), {}).params.format;
  CHECK(chat_format.has_value() == legacy_format.has_value());
  return chat_format;
}

} // namespace

TEST_CASE("an output format may be asked for in the words of several servers") {
  struct row {
    const char* field;
    kind what;
    const char* at;
    const char* key;
  };
  for (const auto& x : {
           row{R"("response_format":{"type":"json_object"})", kind::json, "response_format",
               "json"},
           row{R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,
                  "schema":{"type":"integer"}}})",
               kind::schema, "response_format.json_schema.schema", R"(schema {"type":"integer"})"},
           row{R"("response_format":{"type":"json_object","schema":{"type":"null"}})", kind::schema,
               "response_format.schema", R"(schema {"type":"null"})"},
           row{R"("guided_json":{"type":"integer"})", kind::schema, "guided_json",
               R"(schema {"type":"integer"})"},
           row{R"("guided_json":"{\"type\": \"integer\"}")", kind::schema, "guided_json",
               R"(schema {"type":"integer"})"},
           row{R"("json_schema":true)", kind::schema, "json_schema", "schema true"},
           row{R"("guided_regex":"a+")", kind::regex, "guided_regex", "regex a+"},
           row{R"("regex":"a+","grammar":"","ebnf":"")", kind::regex, "regex", "regex a+"},
           row{R"("grammar":"root ::= \"x\"","regex":"")", kind::grammar, "grammar",
               "grammar root ::= \"x\""},
           row{R"("ebnf":"root ::= \"x\"")", kind::grammar, "ebnf", "grammar root ::= \"x\""},
           row{R"("guided_grammar":"root ::= \"a\"")", kind::grammar, "guided_grammar",
               R"(grammar root ::= "a")"},
           row{R"("structured_outputs":{"grammar":"start: X"})", kind::grammar,
               "structured_outputs.grammar", "grammar start: X"},
           row{R"("guided_choice":["yes","no"])", kind::choice, "guided_choice",
               R"(choice ["yes","no"])"},
           row{R"("structured_outputs":{"regex":"\\d"})", kind::regex, "structured_outputs.regex",
               "regex \\d"},
           row{R"("structured_outputs":{"choice":["a"],"disable_any_whitespace":false})",
               kind::choice, "structured_outputs.choice", R"(choice ["a"])"},
           row{R"("structured_outputs":{"json_object":true})", kind::json, "structured_outputs",
               "json"},
       }) {
    CAPTURE(x.field);
    const auto format = format_of(x.field);
    REQUIRE(format);
    CHECK(format->what == x.what);
    CHECK(format->field == x.at);
    CHECK(format->key() == x.key);
  }
}

TEST_CASE("a free output is asked for by saying so, or nothing") {
  for (const char* field : {R"("response_format":{"type":"text"})", R"("response_format":null)",
                            R"("guided_json":null)", R"("structured_outputs":null)"})
    CHECK_FALSE(format_of(field));
}

TEST_CASE("stop strings may stand beside a format") {
  const auto of_chat =
      parse_chat_request(chat(R"("response_format":{"type":"json_object"},"stop":"}")"), {}).params;
  CHECK(of_chat.format);
  CHECK(of_chat.stop == std::vector<std::string>{"}"});
  const auto of_message =
      parse_messages_request(
          R"({"model":"m","max_tokens":8,"messages":[{"role":"user","content":"hi"}],
              "stop_sequences":["a"],"output_config":{"format":{"type":"json_schema",
              "schema":{"enum":[1]}}}})",
          {})
          .params;
  CHECK(of_message.format);
  CHECK(of_message.stop == std::vector<std::string>{"a"});
}

TEST_CASE("what is no output format is refused where it is wrong") {
  struct row {
    const char* field;
    const char* code;
    const char* param;
  };
  for (const auto& x : {
           row{R"("response_format":"json")", "invalid_value", "response_format"},
           row{R"("response_format":{})", "invalid_value", "response_format.type"},
           row{R"("response_format":{"type":"xml"})", "unsupported_parameter",
               "response_format.type"},
           row{R"("response_format":{"type":"json_schema"})", "invalid_value",
               "response_format.json_schema"},
           row{R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})",
               "invalid_value", "response_format.json_schema.schema"},
           row{R"("response_format":{"type":"json_schema","json_schema":{"schema":{}}})",
               "invalid_value", "response_format.json_schema.name"},
           row{R"("guided_json":"{")", "invalid_value", "guided_json"},
           row{R"("guided_choice":[])", "invalid_value", "guided_choice"},
           row{R"("guided_choice":["a",1])", "invalid_value", "guided_choice[1]"},
           row{R"("guided_regex":"")", "invalid_value", "guided_regex"},
           row{R"("guided_regex":7)", "invalid_value", "guided_regex"},
           row{R"("structured_outputs":{})", "invalid_value", "structured_outputs"},
           row{R"("structured_outputs":{"regex":"a","choice":["a"]})", "invalid_value",
               "structured_outputs"},
           row{R"("structured_outputs":{"grammar":""})", "invalid_value",
               "structured_outputs.grammar"},
           row{R"("guided_grammar":7)", "invalid_value", "guided_grammar"},
           row{R"("structured_outputs":{"structural_tag":"x"})", "unsupported_parameter",
               "structured_outputs.structural_tag"},
           row{R"("grammar":"root ::= \"x\"","regex":"a")", "invalid_value", "grammar"},
           row{R"("guided_regex":"a","guided_choice":["a"])", "invalid_value", "guided_choice"},
           row{R"("response_format":{"type":"json_object"},"guided_json":{})", "invalid_value",
               "guided_json"},
           row{R"("guided_regex":"a","ignore_eos":true)", "invalid_value", "ignore_eos"},
           row{R"("guided_regex":"a","min_tokens":2,"max_tokens":5)", "invalid_value",
               "min_tokens"},
           row{R"("guided_regex":"a","stop":["b"],"stop_token_ids":[5])", "invalid_value",
               "stop_token_ids"},
       }) {
    CAPTURE(x.field);
    for (const auto& f : {chat_failure(chat(x.field)), legacy_failure(legacy(x.field))}) {
      CHECK(f.status == 400);
      CHECK(f.code == x.code);
      CHECK(f.param == x.param);
    }
  }
}
