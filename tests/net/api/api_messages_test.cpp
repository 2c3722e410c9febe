// Messages of chats, and what stands within other fields: what is taken, what is refused, and
// where.
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella::net;
using namespace lamella::net::test;

TEST_CASE("unknown fields within fields are told with their path, and counted without its places") {
  api_limits strict;
  strict.strict = true;
  const auto spoken = [](const std::string& message) {
    return R"({"model":"m","messages":[{"role":"user","content":"a"},)" + message + "]}";
  };
  const struct {
    std::string body, path, counted;
  } rows[] = {
      {spoken(R"({"role":"user","content":"a","x":1})"), "messages[1].x", "messages[].x"},
      {spoken(R"({"role":"user","content":[{"type":"text","text":"a","x":1}]})"),
       "messages[1].content[0].x", "messages[].content[].x"},
      {spoken(R"({"role":"assistant","tool_calls":[{"id":"c","type":"function","x":1,"function":
        {"name":"f","arguments":"{}"}}]})"),
       "messages[1].tool_calls[0].x", "messages[].tool_calls[].x"},
      {spoken(R"({"role":"assistant","tool_calls":[{"id":"c","type":"function","function":
        {"name":"f","arguments":"{}","x":1}}]})"),
       "messages[1].tool_calls[0].function.x", "messages[].tool_calls[].function.x"},
      {chat(R"("stream":true,"stream_options":{"x":1})"), "stream_options.x", "stream_options.x"},
      {chat(R"("response_format":{"type":"json_object","x":1})"), "response_format.x",
       "response_format.x"},
      {chat(
           R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"x":1}})"),
       "response_format.json_schema.x", "response_format.json_schema.x"},
      {chat(R"("structured_outputs":{"json":{},"x":1})"), "structured_outputs.x",
       "structured_outputs.x"},
      {chat(
           R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function",
        "x":1,"function":{"name":"f"}})"),
       "tool_choice.x", "tool_choice.x"}};
  for (const auto& x : rows) {
    CAPTURE(x.body);
    const auto refused = chat_failure(x.body, strict);
    CHECK(refused.code == "unknown_parameter");
    CHECK(refused.param == x.path);
    CHECK(parse_chat_request(x.body, {}).unknown == std::vector<std::string>{x.counted});
  }
  // Tools and schemas are taken whole, and null says nothing.
  for (const auto& body :
       {chat(R"("tools":[{"type":"function","x":1,"function":{"name":"f","x":1}}])"),
        chat(R"("response_format":{"type":"json_object","schema":{"type":"object","x-y":1}})"),
        spoken(R"({"role":"assistant","content":"a","x":null,"annotations":[]})")}) {
    CAPTURE(body);
    CHECK(chat_failure(body, strict).status == 0);
  }
}

TEST_CASE("members of messages that the chat template reads go to it") {
  api_limits limits;
  limits.strict = true;
  limits.template_reads = [](std::string_view name) { return name == "tone" || name == "_x"; };
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"a","tone":{"k":[1]},"reasoning":"r"}]})";
  const auto r = parse_chat_request(body, limits);
  REQUIRE(r.messages[0].more.size() == 1);
  CHECK(r.messages[0].more[0].first == "tone");
  CHECK(r.messages[0].reasoning == "r");
  CHECK(chat_failure(R"({"model":"m","messages":[{"role":"user","content":"a","_x":1}]})", limits)
            .param
        == "messages[0]._x");
}

TEST_CASE("messages may be strings or text parts and are checked one by one") {
  const auto body = [](const std::string& messages) {
    return R"({"model":"m","messages":)" + messages + "}";
  };
  const chat_request r =
      parse_chat_request(body(R"([{"role":"system","content":"s"},{"role":"developer","content":""},
        {"role":"user","name":"bob","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        {"role":"assistant","content":"c","tool_calls":null,"refusal":null},
        {"role":"tool","content":"d","tool_call_id":"1"}])"),
                         {});
  REQUIRE(r.messages.size() == 5);
  CHECK(r.messages[2].content == "a\nb");
  CHECK(r.messages[2].parts == std::vector<std::string>{"a", "b"});
  CHECK(r.messages[2].name == "bob");

  const std::tuple<const char*, const char*, const char*> table[] = {
      {R"([])", "messages", "invalid_value"},
      {R"({})", "messages", "invalid_value"},
      {R"("hi")", "messages", "invalid_value"},
      {R"(null)", "messages", "invalid_value"},
      {R"(["hi"])", "messages[0]", "invalid_value"},
      {R"([{"role":"user"}])", "messages[0].content", "invalid_value"},
      {R"([{"role":"user","content":null}])", "messages[0].content", "invalid_value"},
      {R"([{"content":"x"}])", "messages[0].role", "invalid_value"},
      {R"([{"role":"user","content":"x"},{"role":"robot","content":"x"}])", "messages[1].role",
       "invalid_value"},
      {R"([{"role":1,"content":"x"}])", "messages[0].role", "invalid_value"},
      {R"([{"role":"user","content":5}])", "messages[0].content", "invalid_value"},
      {R"([{"role":"system","content":null}])", "messages[0].content", "invalid_value"},
      {R"([{"role":"assistant","content":null,"refusal":1}])", "messages[0].refusal",
       "invalid_value"},
      {R"([{"role":"user","content":[{"type":"refusal"}]}])", "messages[0].content[0].refusal",
       "invalid_value"},
      {R"([{"role":"assistant","function_call":{"arguments":"{}"}}])",
       "messages[0].function_call.name", "invalid_value"},
      {R"([{"role":"user","content":"x","function_call":{"name":"f"}}])", "messages[0].tool_calls",
       "invalid_value"},
      {R"([{"role":"user","content":["x"]}])", "messages[0].content[0]", "invalid_value"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].type", "unsupported_parameter"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text",
       "invalid_value"},
      {R"([{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]}])",
       "messages[0].tool_calls[0].type", "invalid_value"},
  };
  for (const auto& [messages, param, code] : table) {
    CAPTURE(messages);
    const failure f = chat_failure(body(messages));
    CHECK(f.status == 400);
    CHECK(f.param == param);
    CHECK(f.code == code);
  }
  const std::string one = R"({"role":"user","content":"x"})";
  CHECK(chat_failure(body("[" + repeat(one + ",", 2047) + one + "]")).status == 0);
  CHECK(chat_failure(body("[" + repeat(one + ",", 2048) + one + "]")).param == "messages");
  CHECK(chat_failure(R"({"messages":[{"role":"user","content":"x"}]})").param == "model");
  CHECK(chat_failure(R"({"model":"","messages":[{"role":"user","content":"x"}]})").param
        == "model");
}

TEST_CASE("messages of a history from elsewhere are taken") {
  const auto first = [](const std::string& message) {
    return parse_chat_request(R"({"model":"m","messages":[)" + message + "]}", {}).messages.at(0);
  };
  for (const auto* nothing :
       {R"({"role":"assistant","content":null})", R"({"role":"assistant"})",
        R"({"role":"assistant","content":[]})", R"({"role":"assistant","tool_calls":[]})",
        R"({"role":"tool","content":null,"tool_call_id":"c"})", R"({"role":"user","content":[]})",
        R"({"role":"user","content":"","name":""})"}) {
    CAPTURE(nothing);
    CHECK(first(nothing).content.empty());
    CHECK(first(nothing).name.empty());
  }
  CHECK(first(R"({"role":"assistant","content":null,"refusal":"No."})").content == "No.");
  CHECK(first(R"({"role":"assistant","content":[{"type":"refusal","refusal":"No."}]})").content
        == "No.");
  const auto result = first(R"({"role":"function","name":"f","content":"5"})");
  CHECK(result.role == "tool");
  CHECK(result.name == "f");
  const auto call =
      first(R"({"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}})");
  REQUIRE(call.tool_calls.size() == 1);
  CHECK(call.tool_calls[0].name == "f");
  CHECK(call.tool_calls[0].arguments == "{}");
}
