#include "net/api/messages_writer.hpp"

#include "base/json.hpp"
#include "base/json_writer.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::net;

namespace {

const response_head head{"msg_1", 1700000000, "m", "lamella-1"};
const usage_counts usage{12, 7, 4};

} // namespace

TEST_CASE("a whole message has the published form") {
  response_choice choice;
  choice.text = "hi";
  choice.tool_calls = {{"toolu_1", "f", R"({"x": 1})"}};
  choice.reason = finish_reason::tool_calls;
  CHECK(make_messages_writer(head, false)->body(std::span(&choice, 1), usage, nullptr)
        == R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[)"
           R"({"type":"text","text":"hi"},{"type":"tool_use","id":"toolu_1","name":"f",)"
           R"("input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":)"
           R"({"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,)"
           R"("output_tokens":7}})");
}

TEST_CASE("a message says why it ended") {
  const auto why = [](finish_reason reason, const stop_reason& by, bool clipped = false) {
    response_choice choice;
    choice.reason = reason;
    choice.stopped_by = by;
    // Arguments that were cut are no JSON: the body stays JSON.
    choice.tool_calls = {{"toolu_1", "f", R"({"x": )"}};
    const auto body = parse_json(
        make_messages_writer(head, clipped)->body(std::span(&choice, 1), usage, nullptr));
    const auto* sequence = body.find("stop_sequence")->get_if<std::string>();
    return *body.find("stop_reason")->get_if<std::string>()
           + (sequence == nullptr ? "" : " " + *sequence);
  };
  CHECK(why(finish_reason::stop, {}) == "end_turn");
  CHECK(why(finish_reason::stop, std::string{"##"}) == "stop_sequence ##");
  CHECK(why(finish_reason::stop, uint32_t{7}) == "end_turn");
  CHECK(why(finish_reason::length, {}) == "max_tokens");
  CHECK(why(finish_reason::length, {}, true) == "model_context_window_exceeded");
  CHECK(why(finish_reason::tool_calls, {}) == "tool_use");
}

TEST_CASE("a call that is cut has the arguments so far, without what is unfinished") {
  const auto input_of = [](const std::string& arguments) {
    response_choice choice;
    choice.tool_calls = {{"toolu_1", "f", arguments}};
    choice.reason = finish_reason::length;
    const auto body =
        make_messages_writer(head, false)->body(std::span(&choice, 1), usage, nullptr);
    const auto message = parse_json(body);
    const auto* content = message.find("content")->get_if<json_value::array>();
    return to_json(*content->at(0).find("input"));
  };
  const std::string whole = R"({"a":"x \"{, y","b":[1,{"c":true}],"d":-2.5,"e":{"f":null}})";
  CHECK(input_of(whole) == whole);
  const std::pair<std::string, std::string> table[] = {
      {"", "{}"},
      {"{", "{}"},
      {R"({"a)", "{}"},
      {R"({"a":)", "{}"},
      {R"({"a":"x)", "{}"},
      {R"({"a":"x\)", "{}"},
      {R"({"a":"x\"")", R"({"a":"x\""})"},
      {R"({"a":"x")", R"({"a":"x"})"},
      {R"({"a":"x",)", R"({"a":"x"})"},
      {R"({"a":"x","b)", R"({"a":"x"})"},
      {R"({"a":"x","b":12)", R"({"a":"x"})"}, // it might be 123
      {R"({"a":12 ,"b":tru)", R"({"a":12})"},
      {R"({"a":[1,2)", R"({"a":[1]})"},
      {R"({"a":[{"b":"c"},{"d": )", R"({"a":[{"b":"c"},{}]})"},
      {R"({"a":{"b":1},)", R"({"a":{"b":1}})"},
      {R"(["a",)", "{}"},
      {R"({"a" "b":1,)", "{}"},
      {R"({"a":1]])", R"({"a":1})"},
      {R"({"a":}})", "{}"},
      {"no JSON", "{}"},
      {std::string(200, '['), "{}"},
  };
  for (const auto& [cut, expected] : table) CHECK_MESSAGE(input_of(cut) == expected, cut);
  for (size_t n = 0; n < whole.size(); ++n) // whatever is cut off, the rest is an object
    CHECK(input_of(whole.substr(0, n)).size() <= n + 4);
}

TEST_CASE("the events of a message come in the published order") {
  const auto writer = make_messages_writer(head, false);
  std::string stream;
  for (const auto& part : std::initializer_list<std::string>{
           writer->begin(0, {12, 0, 0}), writer->text(0, "h", nullptr, {}),
           writer->text(0, "", nullptr, {}), writer->text(0, "i", nullptr, {}),
           writer->call(0, 0, "toolu_1", "f", {}), writer->arguments(0, 0, "{}", nullptr, {}),
           writer->finish(0, finish_reason::tool_calls, {}, {}), writer->end(usage)})
    stream += part;
  CHECK(stream
        == "event: message_start\ndata: "
           R"({"type":"message_start","message":{"id":"msg_1","type":"message",)"
           R"("role":"assistant","model":"m","content":[],"stop_reason":null,)"
           R"("stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,)"
           R"("cache_read_input_tokens":0,"output_tokens":0}}})"
           "\n\nevent: content_block_start\ndata: "
           R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"h"}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"i"}})"
           "\n\nevent: content_block_stop\ndata: "
           R"({"type":"content_block_stop","index":0})"
           "\n\nevent: content_block_start\ndata: "
           R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use",)"
           R"("id":"toolu_1","name":"f","input":{}}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta",)"
           R"("partial_json":"{}"}})"
           "\n\nevent: content_block_stop\ndata: "
           R"({"type":"content_block_stop","index":1})"
           "\n\nevent: message_delta\ndata: "
           R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},)"
           R"("usage":{"input_tokens":8,"cache_creation_input_tokens":0,)"
           R"("cache_read_input_tokens":4,"output_tokens":7}})"
           "\n\nevent: message_stop\ndata: "
           R"({"type":"message_stop"})"
           "\n\n");
  CHECK(writer->error(internal_error("broken"), "req-1")
        == "event: error\ndata: "
           R"({"type":"error","error":{"type":"api_error","message":"broken",)"
           R"("code":"internal_error"},"request_id":"req-1"})"
           "\n\n");
  CHECK(writer->ping() == "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

TEST_CASE("reasoning is a block of thinking before the text, whole and in events") {
  response_choice choice;
  choice.reasoning = "why";
  choice.text = "hi";
  const auto whole =
      parse_json(make_messages_writer(head, false)->body(std::span(&choice, 1), usage, nullptr));
  CHECK(to_json(*whole.find("content"))
        == R"([{"type":"thinking","thinking":"why","signature":""},{"type":"text","text":"hi"}])");
  const auto writer = make_messages_writer(head, false);
  std::string stream;
  for (const auto& part : std::initializer_list<std::string>{
           writer->reasoning(0, "wh", nullptr, {}), writer->reasoning(0, "y", nullptr, {}),
           writer->text(0, "hi", nullptr, {}), writer->finish(0, finish_reason::stop, {}, {})})
    stream += part;
  CHECK(stream
        == "event: content_block_start\ndata: "
           R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking",)"
           R"("thinking":"","signature":""}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",)"
           R"("thinking":"wh"}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",)"
           R"("thinking":"y"}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta",)"
           R"("signature":""}})"
           "\n\nevent: content_block_stop\ndata: "
           R"({"type":"content_block_stop","index":0})"
           "\n\nevent: content_block_start\ndata: "
           R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"
           "\n\nevent: content_block_delta\ndata: "
           R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}})"
           "\n\nevent: content_block_stop\ndata: "
           R"({"type":"content_block_stop","index":1})"
           "\n\n");
}

TEST_CASE("errors have the form of the API that was asked") {
  CHECK(error_format_of("/v1/messages") == error_format::anthropic);
  CHECK(error_format_of("/v1/messages/count_tokens") == error_format::anthropic);
  CHECK(error_format_of("/v1/messagesx") == error_format::openai);
  CHECK(error_format_of("/v1/responses") == error_format::openai);
  CHECK(error_body(invalid_value("model", "no"), "req-1", error_format::anthropic)
        == R"({"type":"error","error":{"type":"invalid_request_error","message":"no",)"
           R"("param":"model","code":"invalid_value"},"request_id":"req-1"})");
  const auto unknown = error_body(invalid_api_key(), {}, error_format::anthropic);
  for (const char* part : {"authentication_error", "Authorization: Bearer KEY", "x-api-key: KEY"})
    CHECK_MESSAGE(unknown.find(part) != std::string::npos, part);
  CHECK(error_body(no_capacity("x"), {}, error_format::anthropic).find("overloaded_error")
        != std::string::npos);
}

TEST_CASE("thinking behind a text is a block behind it, whole and in events") {
  const auto writer = make_messages_writer(head, false);
  std::string stream;
  for (const auto& part : std::initializer_list<std::string>{
           writer->text(0, "a", nullptr, {}), writer->reasoning(0, "b", nullptr, {}),
           writer->text(0, "\n\n", nullptr, {}), writer->text(0, "c", nullptr, {}),
           writer->call(0, 0, "toolu_1", "f", {}), writer->reasoning(0, "\n\nd", nullptr, {}),
           writer->finish(0, finish_reason::stop, {}, {})})
    stream += part;
  std::string order;
  for (size_t from = 0; (from = stream.find("\ndata: ", from)) != std::string::npos;) {
    from += 7;
    const auto event = parse_json(stream.substr(from, stream.find("\n\n", from) - from));
    const auto type = *event.find("type")->get_if<std::string>();
    const auto index = std::to_string(*event.find("index")->get_if<int64_t>());
    if (type == "content_block_start")
      order += index + "+" + *event.find("content_block")->find("type")->get_if<std::string>();
    if (type == "content_block_delta")
      for (const char* what : {"text", "thinking", "signature"})
        if (const auto* said = event.find("delta")->find(what))
          order += index + ":" + *said->get_if<std::string>();
    if (type == "content_block_stop") order += index + "-";
    order += " ";
  }
  CHECK(order
        == "0+text 0:a 0- 1+thinking 1:b 1: 1- 2+text 2:c 2- 3+tool_use 3- 4+thinking 4:d 4: 4- ");
  response_choice choice;
  choice.text = "a\n\nc";
  choice.reasoning = "b";
  choice.ends = {{0, 1}};
  const auto whole =
      parse_json(make_messages_writer(head, false)->body(std::span(&choice, 1), usage, nullptr));
  CHECK(to_json(*whole.find("content"))
        == R"([{"type":"text","text":"a"},{"type":"thinking","thinking":"b","signature":""},)"
           R"({"type":"text","text":"c"}])");
}
