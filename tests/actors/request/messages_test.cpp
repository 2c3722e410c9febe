// Anthropic's Messages API from request to answer. The model's weights are random: what is compared
// is what a chat of the same words is answered.
#include "tests/actors/gateway/served.hpp"

#include "base/json_writer.hpp"

namespace lamella::actors::test {

namespace {

const std::string path = "/v1/messages";

std::string body_of(const std::string& more = "", const std::string& bound = "12") {
  return R"({"model":"tiny","temperature":0,"system":"Be brief.","max_tokens":)" + bound
         + R"(,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}])"
         + (more.empty() ? "" : ",") + more + "}";
}

} // namespace

TEST_CASE("a message says what a chat of the same words says, whole and streamed") {
  served s;
  const auto chat = s.post("/v1/chat/completions",
                           R"({"model":"tiny","temperature":0,"max_tokens":12,"messages":[
                             {"role":"system","content":"Be brief."},
                             {"role":"user","content":"Hi"}]})");
  REQUIRE_MESSAGE(chat.status == 200, chat.body);
  const auto x = s.post(path, body_of());
  REQUIRE_MESSAGE(x.status == 200, x.body);
  CHECK(text_at(x.json, "id").starts_with("msg_"));
  CHECK_FALSE(x.headers.get("request-id").empty());
  const auto text = text_at(x.json, "content.0.text");
  CHECK(text == text_at(chat.json, "choices.0.message.content"));
  const auto prompt = int_at(chat.json, "usage.prompt_tokens");
  CHECK(int_at(x.json, "usage.input_tokens") == prompt);
  const bool cut = text_at(chat.json, "choices.0.finish_reason") == "length";
  CHECK(text_at(x.json, "stop_reason") == (cut ? "max_tokens" : "end_turn"));
  const auto counted = s.post(path + "/count_tokens",
                              R"({"model":"tiny","system":"Be brief.","messages":[
                                {"role":"user","content":"Hi"}]})");
  REQUIRE_MESSAGE(counted.status == 200, counted.body);
  CHECK(int_at(counted.json, "input_tokens") == prompt);

  const auto streamed = s.post(path, body_of(R"("stream":true)"));
  REQUIRE(streamed.status == 200);
  std::string joined, types;
  for (size_t from = 0; (from = streamed.body.find("\ndata: ", from)) != std::string::npos;) {
    from += 7;
    const auto event =
        parse_json(streamed.body.substr(from, streamed.body.find("\n\n", from) - from));
    const auto type = text_at(event, "type");
    if (type == "content_block_delta")
      joined += text_at(event, "delta.text");
    else if (type != "ping")
      types += type + " ";
  }
  CHECK(joined == text);
  CHECK(types
        == "message_start content_block_start content_block_stop message_delta message_stop ");
}

TEST_CASE("the bound of a message is an upper one, and a full context says so") {
  served s;
  const auto x = s.post(path, body_of("", "1000000"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  const auto why = text_at(x.json, "stop_reason");
  CHECK((why == "model_context_window_exceeded" || why == "end_turn"));
}

TEST_CASE("a message that the tokens of a request end has reached a bound, not the context's end") {
  auto settings = tiny_settings();
  settings.limits.tokens_per_request = 5;
  served s{settings};
  const auto x = s.post(path, body_of("", "1000000"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  const auto why = text_at(x.json, "stop_reason");
  CHECK((why == "max_tokens" || why == "end_turn"));
}

TEST_CASE("a message of no tokens has no content") {
  served s;
  const auto x = s.post(path, body_of("", "0"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  CHECK(size_at(x.json, "content") == 0);
  CHECK(text_at(x.json, "stop_reason") == "max_tokens");
  CHECK(int_at(x.json, "usage.input_tokens") > 0);
  CHECK(int_at(x.json, "usage.output_tokens") == 0);
}

TEST_CASE("a message may call tools, and refusals are in the form of its API") {
  served s;
  const auto call =
      s.post(path, body_of(R"("tools":[{"name":"f","input_schema":{"type":"object","properties":
        {"a":{"enum":[1,2]}},"required":["a"]}}],"tool_choice":{"type":"tool","name":"f"})",
                           "100"));
  REQUIRE_MESSAGE(call.status == 200, call.body);
  CHECK(text_at(call.json, "stop_reason") == "tool_use");
  CHECK(text_at(call.json, "content.0.type") == "tool_use");
  CHECK(text_at(call.json, "content.0.id").starts_with("toolu_"));
  const auto a = int_at(call.json, "content.0.input.a");
  CHECK((a == 1 || a == 2));
  const auto bad = s.post(path, R"({"model":"tiny","max_tokens":3,"messages":[]})");
  CHECK(bad.status == 400);
  CHECK(text_at(bad.json, "type") == "error");
  CHECK(text_at(bad.json, "error.type") == "invalid_request_error");
  CHECK(text_at(bad.json, "error.param") == "messages");
  CHECK_FALSE(bad.headers.get("request-id").empty());
  const auto other = s.post(path + "/count_tokens", R"({"model":"other","messages":[
    {"role":"user","content":"Hi"}]})");
  CHECK(other.status == 404);
  CHECK(text_at(other.json, "error.type") == "not_found_error");
}

} // namespace lamella::actors::test
