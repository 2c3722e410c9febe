#include "net/api/messages_request.hpp"

#include "base/json_writer.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::net;
using namespace lamella::net::test;

namespace {

const std::string hi = R"([{"role":"user","content":"hi"}])";

/// A body of messages with more members, and other `messages`.
std::string body_of(const std::string& more = "", const std::string& messages = hi) {
  return R"({"model":"m","max_tokens":8,"messages":)" + messages + (more.empty() ? "" : ",") + more
         + "}";
}

chat_request read(const std::string& more = "", const std::string& messages = hi) {
  return parse_messages_request(body_of(more, messages), {});
}

failure refused(const std::string& more, const std::string& messages = hi) {
  return failure_of([&] { read(more, messages); });
}

} // namespace

TEST_CASE("the system's text, turns, calls and results become the messages of a chat") {
  const auto x = read(R"("system":[{"type":"text","text":"Be","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"brief."}])",
                      R"([
    {"role":"user","content":"Sunny?"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
      {"type":"text","text":"I look."},
      {"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}},
      {"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"toolu_1","content":"one"},
      {"type":"tool_result","tool_use_id":"toolu_2","is_error":true,
       "content":[{"type":"text","text":"two"}]},
      {"type":"text","text":"And?"}]}])");
  const auto& m = x.messages;
  REQUIRE(m.size() == 6);
  CHECK(m[0].role == "system");
  CHECK(m[0].content == "Be\nbrief.");
  CHECK(m[1].content == "Sunny?");
  CHECK(m[2].role == "assistant");
  CHECK(m[2].content == "I look.");
  CHECK(m[2].reasoning == "hm");
  REQUIRE(m[2].tool_calls.size() == 2);
  CHECK(m[2].tool_calls[0].arguments == R"({"a":1})");
  CHECK(m[3].role == "tool");
  CHECK(m[3].tool_call_id == "toolu_1");
  CHECK(m[3].content == "one");
  CHECK(m[4].content == "two");
  CHECK(m[5].role == "user");
  CHECK(m[5].content == "And?");
  CHECK(x.params.max_tokens == 8);
  CHECK(x.unknown.empty());
}

TEST_CASE("tools, choices and stop sequences of messages are those of a chat by other names") {
  const std::string tools = R"("tools":[{"name":"find","description":"d","input_schema":
      {"type":"object","properties":{"q":{"type":"string"}}}},
      {"type":"custom","name":"now","input_schema":{"type":"object"}}])";
  const auto x = read(tools + R"(,"stop_sequences":["##"],"temperature":0.5,"top_k":3,
      "metadata":{"user_id":"u"},"thinking":{"type":"enabled","budget_tokens":1024})");
  REQUIRE(x.tools.tools.size() == 2);
  CHECK(x.tools.what == tool_use::choice::automatic);
  CHECK(x.tools.tools[0].schema_field == "tools[0].input_schema");
  CHECK(to_json(x.tools.tools[1].definition)
        == R"({"type":"function","function":{"name":"now","parameters":{"type":"object"}}})");
  CHECK(x.params.stop == std::vector<std::string>{"##"});
  CHECK(x.params.sampling.top_k == 3);
  CHECK(x.unknown.empty());
  const auto choice = [&](const std::string& text) {
    return read(tools + R"(,"tool_choice":)" + text).tools;
  };
  CHECK(choice(R"({"type":"any"})").what == tool_use::choice::required);
  CHECK_FALSE(choice(R"({"type":"auto","disable_parallel_tool_use":true})").parallel);
  CHECK_FALSE(choice(R"({"type":"none"})").active());
  const auto one = choice(R"({"type":"tool","name":"now"})");
  REQUIRE(one.tools.size() == 1);
  CHECK(one.tools[0].name == "now");
  const auto format = read(
      R"("output_config":{"format":{"type":"json_schema","schema":{"enum":[1]}},"effort":"low"})");
  REQUIRE(format.params.format);
  CHECK(format.params.format->field == "output_config.format.schema");
}

TEST_CASE("what messages cannot be is refused with its place") {
  const auto param = [](const std::string& more, const std::string& messages = hi) {
    const auto f = refused(more, messages);
    CHECK(f.status == 400);
    return f.param;
  };
  CHECK(param("", R"([{"role":"user","content":[{"type":"image","source":{}}]}])")
        == "messages[0].content[0].type");
  CHECK(param("", R"([{"role":"user","content":[{"type":"tool_use","id":"a","name":"f",
      "input":{}}]}])")
        == "messages[0].content[0].type");
  CHECK(param("", R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",
      "content":[{"type":"image"}]}]}])")
        == "messages[0].content[0].content[0].type");
  CHECK(param("", R"([{"role":"king","content":"x"}])") == "messages[0].role");
  CHECK(param("", R"([{"role":"user","content":5}])") == "messages[0].content");
  CHECK(param("", R"([{"role":"user","content":"a"},{"role":"assistant","content":[
      {"type":"tool_use","id":"a","name":"f","input":{}}]}])")
        == "messages");
  CHECK(param(R"("output_config":{"format":{"type":"json_schema","schema":{}}})",
              R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])")
            .starts_with("output_config"));
  CHECK(param(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])")
        == "tools[0].type");
  CHECK(param(R"("tools":[{"name":"f"}])") == "tools[0].input_schema");
  CHECK(param(R"("tool_choice":{"type":"any"})") == "tool_choice");
  CHECK(param(R"("stop_sequences":"a")") == "stop_sequences");
  CHECK(param(R"("system":7)") == "system");
  CHECK(param(R"("mcp_servers":[{"name":"x"}])") == "mcp_servers");
  CHECK(failure_of([] {
          parse_messages_request(R"({"model":"m","messages":[{"role":"user","content":"a"}]})", {});
        }).param
        == "max_tokens");
}

TEST_CASE("a bound of 0 asks for the prompt alone, and for nothing of an answer beside it") {
  const auto read_zero = [](const std::string& more) {
    return parse_messages_request(R"({"model":"m","max_tokens":0,"messages":[{"role":"user",
      "content":"a"}])" + more + "}",
                                  {});
  };
  CHECK(read_zero("").params.max_tokens == 0u);
  CHECK(read_zero(R"(,"thinking":{"type":"disabled"},"stream":false)").params.max_tokens == 0u);
  const auto param = [&](const std::string& more) {
    const auto f = failure_of([&] { read_zero(more); });
    CHECK(f.status == 400);
    return f.param;
  };
  CHECK(param(R"(,"stream":true)") == "stream");
  CHECK(param(R"(,"thinking":{"type":"enabled","budget_tokens":1024})") == "thinking");
  CHECK(param(R"(,"output_config":{"format":{"type":"json_schema","schema":{"enum":[1]}}})")
        == "output_config.format.schema");
  CHECK(param(R"(,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"any"})")
        == "tool_choice");
  CHECK(failure_of([] {
          parse_messages_request(
              R"({"model":"m","max_tokens":-1,"messages":[{"role":"user","content":"a"}]})", {});
        }).param
        == "max_tokens");
}

TEST_CASE("thinking of an unknown kind and budgets that Anthropic refuses are refused") {
  const auto thinking = [](const std::string& members, const std::string& more = "") {
    return failure_of([&] {
      parse_messages_request(
          R"({"model":"m","max_tokens":2048,"messages":[{"role":"user","content":"a"}],)"
          R"("thinking":{)"
              + members + "}" + more + "}",
          {});
    });
  };
  const failure unknown = thinking(R"("type":"sometimes")");
  CHECK(unknown.status == 400);
  CHECK(unknown.param == "thinking.type");
  CHECK(unknown.message
        == "thinking.type must be enabled, disabled or adaptive, not \"sometimes\"");
  CHECK(thinking("").param == "thinking.type");
  for (const char* budget : {"1023", "0", "-1", "\"many\"", "2048", "9999"}) {
    const failure f = thinking(std::string{R"("type":"enabled","budget_tokens":)"} + budget);
    CHECK_MESSAGE(f.status == 400, budget);
    CHECK_MESSAGE(f.param == "thinking.budget_tokens", budget);
  }
  for (const char* members :
       {R"("type":"enabled")", R"("type":"enabled","budget_tokens":1024)",
        R"("type":"enabled","budget_tokens":2047)", R"("type":"enabled","budget_tokens":null)",
        R"("type":"adaptive","budget_tokens":9999)", R"("type":"disabled","budget_tokens":0)"})
    CHECK_MESSAGE(thinking(members).status == 0, members);
  // Of an answer with tools between its thoughts, and where nothing is answered.
  CHECK(thinking(R"("type":"enabled","budget_tokens":9999)",
                 R"(,"tools":[{"name":"f","input_schema":{}}])")
            .status
        == 0);
  CHECK_NOTHROW(
      parse_count_tokens_request(R"({"model":"m","messages":[{"role":"user","content":"a"}],)"
                                 R"("thinking":{"type":"enabled","budget_tokens":9999}})",
                                 {}));
}

TEST_CASE("to count tokens nothing of the answer is needed") {
  const auto x = parse_count_tokens_request(
      R"({"model":"m","system":"s","messages":[{"role":"user","content":"a"}]})", {});
  CHECK(x.messages.size() == 2);
  CHECK(failure_of([] { parse_count_tokens_request(R"({"model":"m"})", {}); }).param == "messages");
}
