// The Responses API from request to answer. The model's weights are random: what is compared is
// what a chat of the same words is answered.
#include "tests/actors/gateway/served.hpp"

#include "base/json_writer.hpp"

namespace lamella::actors::test {

namespace {

const std::string path = "/v1/responses";

std::string body_of(const std::string& more = "", const std::string& input = R"("Hi")") {
  return R"({"model":"tiny","temperature":0,"max_output_tokens":12,"input":)" + input
         + (more.empty() ? "" : ",") + more + "}";
}

/// The data of the events of a stream.
std::vector<json_value> events_of(const std::string& stream) {
  std::vector<json_value> result;
  for (size_t from = 0; (from = stream.find("\ndata: ", from)) != std::string::npos;) {
    from += 7;
    result.push_back(parse_json(stream.substr(from, stream.find("\n\n", from) - from)));
  }
  return result;
}

std::string text_of(const json_value& response) {
  return text_at(response, "output.0.content.0.text");
}

answer ask(served& s, const std::string& method, const std::string& id,
           net::http_headers headers = {}) {
  net::http_call_request x;
  x.method = method;
  x.path = path + "/" + id;
  x.headers = std::move(headers);
  x.connect_timeout = x.idle_timeout = deadline;
  return answer_of(net::http_client{s.url()}.call(std::move(x)));
}

} // namespace

TEST_CASE("a response says what a chat of the same words says, whole and streamed") {
  served s;
  const auto chat = s.post("/v1/chat/completions",
                           R"({"model":"tiny","temperature":0,"max_tokens":12,"messages":[
                             {"role":"system","content":"Be brief."},
                             {"role":"user","content":"Hi"}]})");
  REQUIRE_MESSAGE(chat.status == 200, chat.body);
  const auto x = s.post(path, body_of(R"("instructions":"Be brief.","metadata":{"a":"b"})"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  CHECK(text_at(x.json, "id").starts_with("resp_"));
  CHECK(text_at(x.json, "object") == "response");
  CHECK(text_of(x.json) == text_at(chat.json, "choices.0.message.content"));
  CHECK(int_at(x.json, "usage.input_tokens") == int_at(chat.json, "usage.prompt_tokens"));
  CHECK(int_at(x.json, "usage.output_tokens") == int_at(chat.json, "usage.completion_tokens"));
  CHECK(text_at(x.json, "metadata.a") == "b");
  const bool cut = text_at(chat.json, "choices.0.finish_reason") == "length";
  CHECK(text_at(x.json, "status") == (cut ? "incomplete" : "completed"));

  const auto streamed = s.post(path, body_of(R"("instructions":"Be brief.","stream":true)"));
  REQUIRE(streamed.status == 200);
  CHECK(streamed.headers.get("content-type").starts_with("text/event-stream"));
  const auto events = events_of(streamed.body);
  REQUIRE(events.size() > 6);
  CHECK(text_at(events[0], "type") == "response.created");
  CHECK(text_at(events[1], "type") == "response.in_progress");
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    CHECK(int_at(events[i], "sequence_number") == static_cast<int64_t>(i));
    if (text_at(events[i], "type") == "response.output_text.delta")
      text += text_at(events[i], "delta");
  }
  CHECK(text == text_of(x.json));
  CHECK(text_at(events.back(), "type") == (cut ? "response.incomplete" : "response.completed"));
  CHECK(text_of(at(events.back(), "response")) == text);
  CHECK(int_at(events.back(), "response.usage.total_tokens")
        == int_at(x.json, "usage.total_tokens"));
}

TEST_CASE("a response may be continued, asked for again and forgotten") {
  served s;
  const auto first = s.post(path, body_of());
  REQUIRE(first.status == 200);
  const auto id = text_at(first.json, "id");
  const auto next = s.post(path, body_of(R"("previous_response_id":")" + id + "\"", R"("More")"));
  REQUIRE_MESSAGE(next.status == 200, next.body);
  CHECK(text_at(next.json, "previous_response_id") == id);
  const auto told = s.post(path, body_of("", R"([{"role":"user","content":"Hi"},
                                     {"role":"assistant","content":)"
                                                 + to_json(json_value{text_of(first.json)})
                                                 + R"(},{"role":"user","content":"More"}])"));
  REQUIRE_MESSAGE(told.status == 200, told.body);
  CHECK(text_of(told.json) == text_of(next.json));
  CHECK(int_at(told.json, "usage.input_tokens") == int_at(next.json, "usage.input_tokens"));

  // Without an input the model goes on behind its own answer.
  const auto further =
      s.post(path, R"({"model":"tiny","temperature":0,"previous_response_id":")" + id + "\"}");
  REQUIRE_MESSAGE(further.status == 200, further.body);
  CHECK(int_at(further.json, "usage.input_tokens") > int_at(first.json, "usage.input_tokens"));

  CHECK(ask(s, "GET", id).body == first.body);
  CHECK(ask(s, "GET", id + "?stream=false").body == first.body);
  const auto again = ask(s, "GET", id + "?stream=true");
  CHECK(again.status == 400);
  CHECK(text_at(again.json, "error.param") == "stream");
  CHECK(text_at(ask(s, "DELETE", id).json, "id") == id);
  CHECK(ask(s, "GET", id).status == 404);
  CHECK(ask(s, "DELETE", id).status == 404);
  const auto gone = s.post(path, body_of(R"("previous_response_id":")" + id + "\""));
  CHECK(gone.status == 404);
  CHECK(text_at(gone.json, "error.param") == "previous_response_id");
  CHECK(text_at(gone.json, "error.code") == "response_not_found");
  // Streams are kept like whole answers, and nothing that is not to be stored.
  const auto streamed = events_of(s.post(path, body_of(R"("stream":true)")).body);
  CHECK(ask(s, "GET", text_at(streamed.back(), "response.id")).body
        == to_json(at(streamed.back(), "response")));
  const auto fleeting = s.post(path, body_of(R"("store":false)"));
  CHECK(at(fleeting.json, "store") == json_value{false});
  CHECK(ask(s, "GET", text_at(fleeting.json, "id")).status == 404);
}

TEST_CASE("where no responses are kept, none is continued") {
  auto settings = tiny_settings();
  settings.http.responses_keep = std::chrono::milliseconds{0};
  served s{settings};
  const auto x = s.post(path, body_of());
  REQUIRE(x.status == 200);
  CHECK(at(x.json, "store") == json_value{false});
  const auto id = text_at(x.json, "id");
  CHECK(ask(s, "GET", id).status == 404);
  const auto next = s.post(path, body_of(R"("previous_response_id":")" + id + "\""));
  CHECK(next.status == 400);
  CHECK(text_at(next.json, "error.param") == "previous_response_id");
}

TEST_CASE("a response's text and calls are held to their schemas") {
  served s;
  const auto format =
      s.post(path, body_of(R"("text":{"format":{"type":"json_schema","name":"n","strict":true,
                       "schema":{"enum":["yes","no"]}}})"));
  REQUIRE_MESSAGE(format.status == 200, format.body);
  CHECK((text_of(format.json) == "\"yes\"" || text_of(format.json) == "\"no\""));
  const auto call =
      s.post(path, R"({"model":"tiny","temperature":0,"input":"Hi","max_output_tokens":100,
        "tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":
        {"a":{"enum":[1,2]}},"required":["a"]}}],"tool_choice":{"type":"function","name":"f"}})");
  REQUIRE_MESSAGE(call.status == 200, call.body);
  CHECK(text_at(call.json, "status") == "completed");
  REQUIRE(size_at(call.json, "output") == 1);
  CHECK(text_at(call.json, "output.0.type") == "function_call");
  CHECK(text_at(call.json, "output.0.name") == "f");
  const auto arguments = parse_json(text_at(call.json, "output.0.arguments"));
  CHECK((int_at(arguments, "a") == 1 || int_at(arguments, "a") == 2));
  const auto bad = s.post(path, body_of(R"("tools":[{"type":"web_search"}])"));
  CHECK(bad.status == 400);
  CHECK(text_at(bad.json, "error.param") == "tools[0].type");
  const auto schema = s.post(path, body_of(R"("text":{"format":{"type":"json_schema","name":"n",
                                "schema":{"not":{}}}})"));
  CHECK(schema.status == 400);
  CHECK(text_at(schema.json, "error.param") == "text.format.schema");
}

} // namespace lamella::actors::test
