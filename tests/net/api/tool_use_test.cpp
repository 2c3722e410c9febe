#include "net/api/tool_use.hpp"

#include "net/api/messages_request.hpp"
#include "net/api/responses/responses_request.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella::net;
using namespace lamella::net::test;
using choice = tool_use::choice;

namespace {

const std::string two_tools =
    R"("tools":[{"type":"function","function":{"name":"find","description":"d",
  "parameters":{"type":"object","properties":{"q":{"type":"string"}}},"strict":true}},
  {"type":"function","function":{"name":"now"}}])";

tool_use use_of(const std::string& fields) { return parse_chat_request(chat(fields), {}).tools; }

} // namespace

TEST_CASE("tools are read with their schemas, and may be called unless the choice says otherwise") {
  const auto use = use_of(two_tools);
  CHECK(use.what == choice::automatic);
  CHECK(use.parallel);
  REQUIRE(use.tools.size() == 2);
  CHECK(use.tools[0].name == "find");
  CHECK(use.tools[0].strict);
  CHECK(use.tools[0].parameters.find("type") != nullptr);
  CHECK(use.tools[1].parameters.is_null());
  CHECK_FALSE(use.tools[1].strict);
  CHECK_FALSE(use_of("").active());
  CHECK_FALSE(use_of(R"("tools":[],"tool_choice":"auto")").active());
  CHECK_FALSE(use_of(two_tools + R"(,"tool_choice":"none")").active());
  CHECK(use_of(two_tools + R"(,"tool_choice":"auto")").what == choice::automatic);
  CHECK(use_of(two_tools + R"(,"tool_choice":"required")").what == choice::required);
  CHECK_FALSE(use_of(two_tools + R"(,"parallel_tool_calls":false)").parallel);
}

TEST_CASE("a choice of one function leaves that one, once") {
  const auto use =
      use_of(two_tools + R"(,"tool_choice":{"type":"function","function":{"name":"now"}})");
  CHECK(use.what == choice::required);
  CHECK_FALSE(use.parallel);
  REQUIRE(use.tools.size() == 1);
  CHECK(use.tools[0].name == "now");
}

TEST_CASE("a choice of allowed tools leaves those, to be called or not") {
  const auto allowed = [](const std::string& mode, const std::string& names) {
    return two_tools + R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":")" + mode
           + R"(","tools":[)" + names + "]}}";
  };
  const std::string now = R"({"type":"function","function":{"name":"now"}})";
  const auto use = use_of(allowed("auto", now));
  CHECK(use.what == choice::automatic);
  CHECK(use.parallel);
  REQUIRE(use.tools.size() == 1);
  CHECK(use.tools[0].name == "now");
  const auto find = R"({"type":"function","function":{"name":"find"}})";
  CHECK(use_of(allowed("required", now + "," + find)).tools.size() == 2);
  CHECK(use_of(allowed("required", find)).what == choice::required);
  CHECK(use_of(allowed("required", find)).tools.at(0).schema_field
        == "tools[0].function.parameters");
  const auto param = [&](const std::string& mode, const std::string& names) {
    return chat_failure(chat(allowed(mode, names))).param;
  };
  CHECK(param("none", now) == "tool_choice.allowed_tools.mode");
  CHECK(param("auto", "") == "tool_choice.allowed_tools.tools");
  CHECK(param("auto", R"({"type":"function","function":{"name":"other"}})")
        == "tool_choice.allowed_tools.tools");
  CHECK(param("auto", R"({"type":"custom","name":"now"})")
        == "tool_choice.allowed_tools.tools[0].type");
}

TEST_CASE("chats have up to 128 tools, responses and messages up to 1024") {
  const auto tools = [](size_t count, const char* before, const char* behind) {
    std::string all = R"("tools":[)";
    for (size_t i = 0; i < count; ++i)
      all += (i > 0 ? "," : "") + std::string{before} + "f" + std::to_string(i) + behind;
    return all + "]}";
  };
  const auto chat_of = [&](size_t count) {
    return R"({"model":"m","messages":[{"role":"user","content":"hi"}],)"
           + tools(count, R"({"type":"function","function":{"name":")", "\"}}");
  };
  const auto response_of = [&](size_t count) {
    return R"({"model":"m","input":"hi",)" + tools(count, R"({"type":"function","name":")", "\"}");
  };
  const auto message_of = [&](size_t count) {
    return R"({"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}],)"
           + tools(count, R"({"name":")", R"(","input_schema":{"type":"object"}})");
  };
  CHECK(parse_chat_request(chat_of(128), {}).tools.tools.size() == 128);
  CHECK(chat_failure(chat_of(129)).param == "tools");
  CHECK(parse_responses_request(response_of(1024), {}).chat.tools.tools.size() == 1024);
  CHECK(failure_of([&] { parse_responses_request(response_of(1025), {}); }).param == "tools");
  CHECK(parse_messages_request(message_of(1024), {}).tools.tools.size() == 1024);
  CHECK(failure_of([&] { parse_messages_request(message_of(1025), {}); }).param == "tools");
}

TEST_CASE("what means the same has one key") {
  CHECK(use_of(two_tools).key() == use_of(two_tools + R"(,"tool_choice":"auto")").key());
  CHECK(use_of(two_tools).key() != use_of(two_tools + R"(,"tool_choice":"required")").key());
  CHECK(use_of("").key().empty());
}

TEST_CASE("calls and results are read from messages") {
  const auto r = parse_chat_request(
      R"({"model":"m","messages":[{"role":"user","content":"hi"},
          {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
           "function":{"name":"find","arguments":"{\"q\": 1}"}}]},
          {"role":"tool","tool_call_id":"call_1","content":"found"},
          {"role":"assistant","content":"done","tool_calls":[]}]})",
      {});
  REQUIRE(r.messages.size() == 4);
  REQUIRE(r.messages[1].tool_calls.size() == 1);
  CHECK(r.messages[1].tool_calls[0].name == "find");
  CHECK(r.messages[1].tool_calls[0].arguments == R"({"q": 1})");
  CHECK(r.messages[1].content.empty());
  CHECK(r.messages[2].tool_call_id == "call_1");
  CHECK(r.messages[3].tool_calls.empty());
}

TEST_CASE("tools and calls that are none are refused where they are wrong") {
  struct row {
    std::string fields;
    const char* code;
    const char* param;
  };
  for (const auto& x : {
           row{R"("tools":{})", "invalid_value", "tools"},
           row{R"("tools":[{}])", "invalid_value", "tools[0].type"},
           row{R"("tools":[{"type":"retrieval"}])", "unsupported_parameter", "tools[0].type"},
           row{R"("tools":[{"type":"function"}])", "invalid_value", "tools[0].function"},
           row{R"("tools":[{"type":"function","function":{"name":"a b"}}])", "invalid_value",
               "tools[0].function.name"},
           row{R"("tools":[{"type":"function","function":{"name":"a","parameters":[]}}])",
               "invalid_value", "tools[0].function.parameters"},
           row{R"("tools":[{"type":"function","function":{"name":"a"}},
                  {"type":"function","function":{"name":"a"}}])",
               "invalid_value", "tools"},
           row{R"("tool_choice":"required")", "invalid_value", "tool_choice"},
           row{two_tools + R"(,"tool_choice":"any")", "invalid_value", "tool_choice"},
           row{two_tools + R"(,"tool_choice":{"type":"function","function":{"name":"other"}})",
               "invalid_value", "tool_choice.function.name"},
           row{two_tools + R"(,"ignore_eos":true)", "invalid_value", "ignore_eos"},
           row{two_tools + R"(,"min_tokens":3)", "invalid_value", "min_tokens"},
           row{R"("functions":[{}])", "unsupported_parameter", "functions"},
       }) {
    CAPTURE(x.fields);
    const auto f = chat_failure(chat(x.fields));
    CHECK(f.status == 400);
    CHECK(f.code == x.code);
    CHECK(f.param == x.param);
  }
  const auto message = [](const std::string& text) {
    return chat_failure(R"({"model":"m","messages":[)" + text + "]}");
  };
  CHECK(message(R"({"role":"user","content":"x","tool_calls":[{"type":"function",
        "function":{"name":"f"}}]})")
            .param
        == "messages[0].tool_calls");
  CHECK(message(R"({"role":"assistant","content":"","tool_calls":[{"type":"function"}]})").param
        == "messages[0].tool_calls[0].function");
}
