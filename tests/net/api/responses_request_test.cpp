#include "net/api/responses/responses_request.hpp"

#include "base/json_writer.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::net;
using namespace lamella::net::test;

namespace {

/// A body of responses with more members, and another `input`.
std::string body_of(const std::string& more = "", const std::string& input = R"("hi")") {
  return R"({"model":"m","input":)" + input + (more.empty() ? "" : ",") + more + "}";
}

responses_request read(const std::string& more = "", const std::string& input = R"("hi")") {
  return parse_responses_request(body_of(more, input), {});
}

failure refused(const std::string& more, const std::string& input = R"("hi")") {
  return failure_of([&] { read(more, input); });
}

} // namespace

TEST_CASE("a response's input is a text, or items that become messages") {
  const auto plain = read(R"("instructions":"Be brief.")");
  REQUIRE(plain.chat.messages.size() == 1);
  CHECK(plain.chat.messages[0].role == "user");
  CHECK(plain.chat.messages[0].content == "hi");
  CHECK(plain.facts.instructions == "Be brief.");
  CHECK_FALSE(plain.chat.params.max_tokens);

  const auto x = read("", R"([
    {"role":"developer","content":"Be brief."},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
      {"type":"input_text","text":"b"}]},
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"think"}]},
    {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[
      {"type":"output_text","text":"let me see","annotations":[],"logprobs":[]}]},
    {"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"a\":1}"},
    {"type":"function_call","call_id":"call_2","name":"g","arguments":"{}"},
    {"type":"function_call_output","call_id":"call_1","output":"one"},
    {"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"t"}]}
  ])");
  const auto& m = x.chat.messages;
  REQUIRE(m.size() == 5);
  CHECK(m[0].role == "developer");
  CHECK(m[1].content == "a\nb");
  CHECK(m[1].parts.size() == 2);
  CHECK(m[2].role == "assistant");
  CHECK(m[2].content == "let me see");
  CHECK(m[2].reasoning == "think");
  REQUIRE(m[2].tool_calls.size() == 2); // of one answer
  CHECK(m[2].tool_calls[0].id == "call_1");
  CHECK(m[2].tool_calls[0].arguments == "{\"a\":1}");
  CHECK(m[3].role == "tool");
  CHECK(m[3].tool_call_id == "call_1");
  CHECK(m[3].content == "one");
  CHECK(m[4].content == "t");
  CHECK(x.chat.unknown.empty());
}

TEST_CASE("tools, formats and bounds of a response are those of a chat by other names") {
  const auto x = read(R"("tools":[{"type":"function","name":"find","description":"d","strict":true,
      "parameters":{"type":"object","properties":{"q":{"type":"string"}}}},
      {"type":"function","name":"now"}],
    "tool_choice":{"type":"function","name":"find"},"max_output_tokens":9,"temperature":0,
    "top_p":0.5,"seed":7,"include":["message.output_text.logprobs","reasoning.encrypted_content"],
    "top_logprobs":2,"metadata":{"a":"b"},"reasoning":{"effort":"low"},"store":false)");
  REQUIRE(x.chat.tools.tools.size() == 1);
  const auto& tool = x.chat.tools.tools[0];
  CHECK(tool.name == "find");
  CHECK(tool.strict);
  CHECK(tool.schema_field == "tools[0].parameters");
  CHECK(to_json(tool.definition)
        == R"({"type":"function","function":{"name":"find","description":"d","parameters":)"
           R"({"type":"object","properties":{"q":{"type":"string"}}},"strict":true}})");
  CHECK_FALSE(x.chat.tools.parallel);
  CHECK(x.chat.params.max_tokens == 9);
  CHECK(x.chat.params.logprobs == 2);
  CHECK(x.chat.params.sampling.seed == 7);
  CHECK(x.facts.metadata == R"({"a":"b"})");
  CHECK_FALSE(x.facts.store);
  CHECK(x.chat.unknown.empty());

  const auto schema = read(
      R"("text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"enum":[1]}}})");
  REQUIRE(schema.chat.params.format);
  CHECK(schema.chat.params.format->field == "text.format.schema");
  CHECK(read(R"("text":{"format":{"type":"json_object"}})").chat.params.format.has_value());
  const auto text = read(R"("text":{"verbosity":"low"})");
  CHECK_FALSE(text.chat.params.format);
  CHECK(text.facts.text == R"({"format":{"type":"text"},"verbosity":"low"})");
  const auto allowed = read(R"("tools":[{"type":"function","name":"a"},
      {"type":"function","name":"b"}],"tool_choice":{"type":"allowed_tools","mode":"required",
      "tools":[{"type":"function","name":"b"}]})");
  REQUIRE(allowed.chat.tools.tools.size() == 1);
  CHECK(allowed.chat.tools.tools[0].name == "b");
}

TEST_CASE("what a server with tools of its own would know is refused with its place") {
  const auto param = [](const std::string& more, const std::string& input = R"("hi")") {
    const auto f = refused(more, input);
    CHECK(f.status == 400);
    return f.param;
  };
  CHECK(param(R"("tools":[{"type":"web_search"}])") == "tools[0].type");
  CHECK(param(R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"mcp"})")
        == "tool_choice.type");
  CHECK(param("", R"([{"type":"web_search_call","id":"ws_1"}])") == "input[0].type");
  CHECK(param("", R"([{"id":"msg_1"}])") == "input[0].type"); // an item_reference
  CHECK(param("", R"([{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])")
        == "input[0].content[0].type");
  CHECK(param("", R"([{"role":"king","content":"x"}])") == "input[0].role");
  CHECK(param("", R"([{"role":"user"}])") == "input[0].content");
  CHECK(param("", R"([{"type":"function_call","name":"f","arguments":"{}"}])")
        == "input[0].call_id");
  CHECK(param("", R"([{"type":"function_call_output","call_id":"c","output":3}])")
        == "input[0].output");
  CHECK(param("", "[]") == "input");
  CHECK(param("", "7") == "input");
  CHECK(param(R"("previous_response_id":"resp_1")", "7") == "input");
  for (const auto* field : {"background", "conversation", "prompt", "truncation"})
    CHECK(param("\"" + std::string{field} + R"(":"auto")") == field);
  CHECK(param(R"("max_tokens":3)") == "max_tokens");
  CHECK(param(R"("response_format":{"type":"text"})") == "response_format");
  CHECK(param(R"("n":2)") == "n");
  CHECK(param(R"("max_output_tokens":0)") == "max_output_tokens");
  CHECK(param(R"("metadata":{"a":1})") == "metadata.a");
  CHECK(param(R"("include":["everything"])") == "include[0]");
  CHECK(param(R"("text":{"format":{"type":"xml"}})") == "text.format.type");
  for (const std::string field : {"text", "reasoning"}) // the answer would repeat them
    CHECK(param("\"" + field + R"(":{"x":")" + std::string(1 << 20, 'x') + "\"}") == field);
  CHECK(failure_of([] { parse_responses_request(R"({"model":"m"})", {}); }).param == "input");
  CHECK(refused(R"("max_tokens":3)").message.find("max_output_tokens") != std::string::npos);
}

TEST_CASE("a response that continues another one needs no input") {
  const std::string more = R"("previous_response_id":"resp_1")";
  for (const auto* input : {"[]", "null"}) {
    CAPTURE(input);
    const auto x = read(more, input);
    CHECK(x.chat.messages.empty());
    CHECK(x.facts.previous_id == "resp_1");
    CHECK(refused(R"("previous_response_id":null)", input).param == "input");
  }
  CHECK(parse_responses_request(R"({"model":"m",)" + more + "}", {}).chat.messages.empty());
}

TEST_CASE("bounds of metadata and names are told and counted in characters, as OpenAI has them") {
  const auto of = [](size_t characters) { // of two bytes each
    std::string text;
    while (characters-- > 0) text += "é";
    return text;
  };
  CHECK(refused(R"("metadata":{"a":")" + of(513) + "\"}").param == "metadata.a");
  CHECK(refused(R"("metadata":{")" + of(65) + R"(":"b"})").param == "metadata");
  CHECK(refused(R"("user":")" + of(513) + "\"").param == "user");
  const auto longest =
      read(R"("metadata":{")" + of(64) + "\":\"" + of(512) + R"("},"user":")" + of(512) + "\"");
  CHECK(longest.facts.metadata.size() > 1000);
}
