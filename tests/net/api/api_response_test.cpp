// Answers as text: golden bodies, since clients depend on every member.
#include "base/json_reader.hpp"
#include "net/api/api_response.hpp"
#include "net/http/api_error.hpp"
#include "net/http/http_ids.hpp"
#include "net/http/sse.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

using namespace lamella;
using namespace lamella::net;

namespace {

const response_head head{"chatcmpl-1", 1700000000, "m", "lamella-1.2.3-0badcafe"};
const usage_counts usage{12, 7, 4};

const std::string usage_text =
    R"({"prompt_tokens":12,"completion_tokens":7,"total_tokens":19,)"
    R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":0}})";

std::vector<token_logprobs> two_tokens() {
  return {{" the", -0.5, {{" the", -0.5}, {"\xC3", -INFINITY}}}, {"é", -1, {}}};
}

} // namespace

TEST_CASE("a chat answer has the published form") {
  response_choice choice;
  choice.text = "hi \"you\"\n";
  choice.stopped_by = std::string("##");
  CHECK(chat_body(head, std::span(&choice, 1), usage)
        == R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m",)"
           R"("system_fingerprint":"lamella-1.2.3-0badcafe","choices":[{"index":0,"message":)"
           R"({"role":"assistant","content":"hi \"you\"\n","refusal":null},"logprobs":null,)"
           R"("finish_reason":"stop","stop_reason":"##"}],"usage":)"
               + usage_text + "}");
}

TEST_CASE("logprobs of a chat list token, bytes and alternatives, with -9999 for impossible ones") {
  response_choice choice;
  choice.text = " theé";
  choice.reason = finish_reason::length;
  choice.logprobs = two_tokens();
  const std::string body = chat_body(head, std::span(&choice, 1), usage);
  CHECK(body.find(
            R"("logprobs":{"content":[{"token":" the","logprob":-0.5,"bytes":[32,116,104,101],)"
            R"("top_logprobs":[{"token":" the","logprob":-0.5,"bytes":[32,116,104,101]},)"
            "{\"token\":\"\uFFFD\",\"logprob\":-9999.0,\"bytes\":[195]}]},"
            R"({"token":"é","logprob":-1.0,"bytes":[195,169],"top_logprobs":[]}],"refusal":null})")
        != std::string::npos);
  CHECK(body.find(R"("finish_reason":"length","stop_reason":null)") != std::string::npos);
}

TEST_CASE("a legacy answer has text, and logprobs as four arrays") {
  response_choice choice;
  choice.index = 3;
  choice.text = "x theé";
  choice.stopped_by = 2u;
  choice.logprobs = two_tokens();
  choice.logprobs->insert(choice.logprobs->begin(), {"x", std::nullopt, {}});
  response_head legacy = head;
  legacy.id = "cmpl-1";
  legacy.service_tier = true;
  CHECK(
      completion_body(legacy, std::span(&choice, 1), usage)
      == R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m",)"
         R"("system_fingerprint":"lamella-1.2.3-0badcafe","service_tier":"default","choices":)"
         R"([{"index":3,"text":"x theé","logprobs":{"tokens":["x"," the","é"],"token_logprobs":)"
         R"([null,-0.5,-1.0],"top_logprobs":[null,{" the":-0.5,"bytes:\\xc3":-9999.0},{"é":-1.0}],)"
         R"("text_offset":[0,1,5]},"finish_reason":"stop","stop_reason":2}],"usage":)"
             + usage_text + "}");
}

TEST_CASE("a legacy answer tells the token itself beside the best ones, once") {
  response_choice choice;
  choice.text = "abc";
  choice.logprobs = {{"a", -3, {{"x", -0.5}, {"y", -1}}},
                     {"b", -0.5, {{"b", -0.5}, {"x", -1}}},
                     {"c", -INFINITY, {}}};
  const auto body = completion_body(head, std::span(&choice, 1), usage);
  CHECK(body.find(R"("top_logprobs":[{"x":-0.5,"y":-1.0,"a":-3.0},{"b":-0.5,"x":-1.0},)"
                  R"({"c":-9999.0}])")
        != std::string::npos);
  stream_chunks chunks(stream_chunks::style::completion, head, false, false);
  CHECK(chunks.text(0, "abc", &*choice.logprobs).find(R"("y":-1.0,"a":-3.0})")
        != std::string::npos);
}

TEST_CASE("a legacy answer names parts of characters by their bytes, each with its own value") {
  response_choice choice;
  choice.text = "\u65E5\uFFFD";
  choice.logprobs = {{"\xE6\x97", -0.5, {{"\xE6\x97", -0.5}, {"\xE6", -1}, {"\xE6\x98", -2}}},
                     {"\xA5", -3, {{"\x97", -0.25}, {"\uFFFD", -1}}},
                     {" \xE6\n\\", -4, {}},
                     {"a", -5, {{"a", -1}, {"b", -2}}}}; // the first is another token's
  const std::string expected =
      R"("tokens":["bytes:\\xe6\\x97","bytes:\\xa5","bytes: \\xe6\\x0a\\x5c","a"],)"
      R"("token_logprobs":[-0.5,-3.0,-4.0,-5.0],"top_logprobs":[)"
      R"({"bytes:\\xe6\\x97":-0.5,"bytes:\\xe6":-1.0,"bytes:\\xe6\\x98":-2.0},)"
      "{\"bytes:\\\\x97\":-0.25,\"\uFFFD\":-1.0,\"bytes:\\\\xa5\":-3.0},"
      R"({"bytes: \\xe6\\x0a\\x5c":-4.0},{"a":-5.0,"b":-2.0}])";
  const auto body = completion_body(head, std::span(&choice, 1), usage);
  CHECK(body.find(expected) != std::string::npos);
  stream_chunks chunks(stream_chunks::style::completion, head, false, false);
  CHECK(chunks.text(0, choice.text, &*choice.logprobs).find(expected) != std::string::npos);
}

TEST_CASE("the metrics object is there when asked for") {
  response_choice choice;
  const response_metrics metrics{1.5, 20, 300, 10, 100, 1, 42};
  CHECK(chat_body(head, std::span(&choice, 1), usage, &metrics)
            .ends_with(R"(,"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":20.0,)"
                       R"("generation_time_ms":300.0,"mean_itl_ms":10.0,"tokens_per_second":100.0,)"
                       R"("recoveries":1,"recovery_pause_ms":42.0}})"));
}

TEST_CASE("the chunks of a chat stream follow the published order") {
  stream_chunks chunks(stream_chunks::style::chat, head, false, false);
  const std::string begin =
      R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",)"
      R"("system_fingerprint":"lamella-1.2.3-0badcafe","choices":[{"index":1,"delta":)";
  CHECK(chunks.role(1)
        == begin + R"({"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})");
  CHECK(chunks.text(1, "a\nb")
        == begin + R"({"content":"a\nb"},"logprobs":null,"finish_reason":null}]})");
  CHECK(chunks.finish(1, finish_reason::stop)
        == begin + R"({},"logprobs":null,"finish_reason":"stop","stop_reason":null}]})");
}

TEST_CASE("usage in a stream: nowhere, null and once, or running") {
  stream_chunks with(stream_chunks::style::chat, head, true, false);
  for (const std::string& chunk :
       {with.role(0), with.text(0, "x"), with.finish(0, finish_reason::length)})
    CHECK(chunk.ends_with(R"(],"usage":null})"));
  CHECK(with.usage(usage).ends_with(R"("choices":[],"usage":)" + usage_text + "}"));
  stream_chunks running(stream_chunks::style::chat, head, true, true);
  CHECK(running.text(0, "x", nullptr, usage).ends_with(R"("usage":)" + usage_text + "}"));
  stream_chunks without(stream_chunks::style::completion, head, false, false);
  CHECK(without.text(0, "x").find("usage") == std::string::npos);
}

TEST_CASE("a legacy stream has whole objects, and offsets that go on from chunk to chunk") {
  stream_chunks chunks(stream_chunks::style::completion, head, false, false);
  CHECK(chunks.role(0).empty());
  const auto tokens = two_tokens();
  CHECK(chunks.text(0, " theé", &tokens).find(R"("text_offset":[0,4])") != std::string::npos);
  CHECK(chunks.text(0, " theé", &tokens).find(R"("text_offset":[5,9])") != std::string::npos);
  CHECK(chunks.text(1, " theé", &tokens).find(R"("text_offset":[0,4])") != std::string::npos);
  CHECK(chunks.finish(0, finish_reason::stop, 5u)
        == R"({"id":"chatcmpl-1","object":"text_completion","created":1700000000,"model":"m",)"
           R"("system_fingerprint":"lamella-1.2.3-0badcafe","choices":[{"index":0,"text":"",)"
           R"("logprobs":null,"finish_reason":"stop","stop_reason":5}]})");
}

TEST_CASE("errors have all four keys, and param and code are strings or null") {
  CHECK(error_body(invalid_value("messages[1].content", "bad \"x\""))
        == R"({"error":{"message":"bad \"x\"","type":"invalid_request_error",)"
           R"("param":"messages[1].content","code":"invalid_value"}})");
  CHECK(error_body(bad_request("x"), "req-1")
        == R"({"error":{"message":"x","type":"invalid_request_error","param":null,"code":null,)"
           R"("lamella":{"request_id":"req-1","retryable":false}}})");
  CHECK(error_body(loading(R"({"phase":"weights","ratio":0.5})"))
            .ends_with(R"("code":"loading","lamella":{"retryable":true,"detail":)"
                       R"({"phase":"weights","ratio":0.5}}}})"));
}

TEST_CASE("every row of the error table has its status, type, code and headers") {
  struct row {
    api_error error;
    int status;
    const char* type;
    const char* code;
    const char* headers;
  };
  const row rows[] = {
      {invalid_json("x"), 400, "invalid_request_error", "invalid_json", ""},
      {unknown_parameter("x"), 400, "invalid_request_error", "unknown_parameter", ""},
      {unsupported_parameter("x", "y"), 400, "invalid_request_error", "unsupported_parameter", ""},
      {context_length_exceeded(1, 2, 3), 400, "invalid_request_error", "context_length_exceeded",
       ""},
      {never_fits("x"), 400, "invalid_request_error", "context_length_exceeded", ""},
      {invalid_api_key(), 401, "authentication_error", "invalid_api_key",
       "www-authenticate: Bearer;"},
      {insufficient_permissions("x"), 403, "permission_error", "insufficient_permissions", ""},
      {model_not_found("x"), 404, "invalid_request_error", "model_not_found", ""},
      {route_not_found("GET", "/"), 404, "invalid_request_error", "route_not_found", ""},
      {method_not_allowed("PUT", "GET"), 405, "invalid_request_error", "method_not_allowed",
       "allow: GET;"},
      {body_too_large(5), 413, "invalid_request_error", "body_too_large", ""},
      {unsupported_media_type("x"), 415, "invalid_request_error", "unsupported_media_type", ""},
      {unsupported_content_coding("gzip"), 415, "invalid_request_error",
       "unsupported_content_coding", "accept-encoding: identity;"},
      {deadline_exceeded("x"), 408, "timeout_error", "deadline_exceeded", "x-should-retry: false;"},
      {queue_full(1500), 429, "rate_limit_error", "queue_full",
       "retry-after: 2;retry-after-ms: 1500;"},
      {rate_limit_exceeded("x", 2000), 429, "rate_limit_error", "rate_limit_exceeded",
       "retry-after: 2;retry-after-ms: 2000;"},
      {internal_error("x"), 500, "server_error", "internal_error", ""},
      {unsupported_endpoint("x"), 400, "invalid_request_error", "unsupported_endpoint", ""},
      {loading(""), 503, "unavailable_error", "loading", "retry-after: 5;retry-after-ms: 5000;"},
      {draining(), 503, "unavailable_error", "draining", "retry-after: 5;retry-after-ms: 5000;"},
      {no_capacity("x"), 503, "unavailable_error", "no_capacity",
       "retry-after: 5;retry-after-ms: 5000;"},
      {recovery_failed("x"), 503, "unavailable_error", "recovery_failed",
       "retry-after: 5;retry-after-ms: 5000;"},
  };
  for (const row& each : rows) {
    CAPTURE(each.code);
    CHECK(each.error.status == each.status);
    CHECK(each.error.type == each.type);
    CHECK(each.error.code == each.code);
    std::string headers;
    for (const auto& [name, value] : error_headers(each.error))
      headers += name + ": " + value + ";";
    CHECK(headers == "content-type: application/json;" + std::string(each.headers));
    CHECK_NOTHROW(parse_json(error_body(each.error, "r")));
  }
}

TEST_CASE("a full context is told in the words by which clients know it") {
  for (const auto& error : {context_length_exceeded(10, 20, 25), prompt_too_long(30, 25, "prompt"),
                            never_fits("30 slots wanted, 25 there")}) {
    CAPTURE(error.message);
    CHECK(error.message.find("maximum context length") != std::string::npos);
    CHECK(error.message.find("25") != std::string::npos);
  }
  CHECK(context_length_exceeded(10, 20, 25)
            .message.starts_with("This model's maximum context length is 25 tokens. However, "));
}

TEST_CASE("a full context is told to clients of /v1/messages in Anthropic's words") {
  const auto message_of = [](const api_error& error) {
    const auto body = parse_json(error_body(error, "r", error_format::anthropic));
    return std::string{*body.find("error")->find("message")->get_if<std::string>()};
  };
  CHECK(message_of(prompt_too_long(30, 25, "messages"))
        == "prompt is too long: 30 tokens > 25 maximum");
  CHECK(message_of(context_length_exceeded(25, 1, 25))
        == "prompt is too long: 25 tokens > 25 maximum");
  CHECK(message_of(context_length_exceeded(26, 0, 25))
        == "prompt is too long: 26 tokens > 25 maximum");
  CHECK(
      message_of(context_length_exceeded(10, 20, 25))
      == "input length and `max_tokens` exceed context limit: 10 + 20 > 25, decrease input length "
         "or `max_tokens` and try again");
  CHECK(message_of(never_fits("30 slots")).find("30 slots") != std::string::npos);
  CHECK(context_length_exceeded(10, 20, 25, "input", "max_output_tokens")
            .message.ends_with("or lower max_output_tokens"));
}

TEST_CASE("foreign text in a message is short and printable") {
  const std::string body = error_body(model_not_found("a\n\xFF" + std::string(500, 'x')));
  CHECK(body.find("\\\"a??xxx") != std::string::npos);
  CHECK(body.size() < 400);
}

TEST_CASE("models, tokens and version have the documented form") {
  const model_entry entry{"a/b", "a/b", 1700000000, 8192, {{"layers", "30"}}};
  const std::string one =
      R"({"id":"a/b","object":"model","type":"model","display_name":"a/b","created":1700000000,)"
      R"("created_at":"2023-11-14T22:13:20Z","owned_by":"lamella","root":"a/b","parent":null,)"
      R"("max_model_len":8192,"meta":{"layers":30}})";
  CHECK(model_body(entry) == one);
  CHECK(models_body(std::span(&entry, 1))
        == R"({"object":"list","data":[)" + one
               + R"(],"has_more":false,"first_id":"a/b","last_id":"a/b"})");
  CHECK(models_body({})
        == R"({"object":"list","data":[],"has_more":false,"first_id":null,"last_id":null})");
  const std::vector<uint32_t> tokens{1, 2, 3};
  CHECK(tokenize_body(tokens, 8192)
        == R"({"count":3,"max_model_len":8192,"tokens":[1,2,3],"token_strs":null})");
  const std::vector<std::string> strings{"a", "\xC3", "c"};
  CHECK(tokenize_body(tokens, 8192, &strings)
        == "{\"count\":3,\"max_model_len\":8192,\"tokens\":[1,2,3],\"token_strs\":[\"a\","
           "\"\uFFFD\",\"c\"]}");
  CHECK(tokenize_body({}, 8192).find(R"("count":0)") != std::string::npos);
  CHECK(detokenize_body("a\"") == R"({"prompt":"a\""})");
  CHECK(version_body("1", "2", "3") == R"({"version":"1","commit":"2","build_date":"3"})");
}

TEST_CASE("ids are unlike, url-safe and long enough") {
  std::set<std::string> seen;
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = make_response_id("chatcmpl-", random(), random());
    CHECK(id.size() == 9 + 24);
    CHECK(id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
          == std::string::npos);
    CHECK(seen.insert(id).second);
  }
}

TEST_CASE("whatever bytes a model makes, every chunk is one line of valid JSON") {
  std::mt19937 random(31);
  stream_chunks chat(stream_chunks::style::chat, head, true, false);
  stream_chunks legacy(stream_chunks::style::completion, head, false, false);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (unsigned n = random() % 20; n; --n) bytes += static_cast<char>(random());
    const std::vector<token_logprobs> tokens{{bytes, -1, {{bytes, -1}, {bytes, -2}}}};
    for (const std::string& chunk :
         {chat.text(0, bytes, &tokens), legacy.text(0, bytes, &tokens)}) {
      CHECK(chunk.find('\n') == std::string::npos);
      const json_value value = parse_json(chunk);
      CHECK(value.find("choices")->get_if<json_value::array>()->size() == 1);
    }
  }
}

TEST_CASE("events are read the same in pieces of any size") {
  const std::string wire = "\xEF\xBB\xBF" + sse_event("{\"a\":1}") + std::string(sse_ping)
                           + "event: x\r\nid: 7\r\ndata:no blank\r\n\r\n"
                             "data: two\rdata: lines\r\rdata\n\n: c\ndata: é\n\n"
                           + std::string(sse_done) + "data: cut off\n";
  const std::vector<std::string> expected{"{\"a\":1}", "no blank", "two\nlines", "", "é", "[DONE]"};
  std::mt19937 random(37);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> events;
    sse_reader reader([&](std::string_view data) { events.emplace_back(data); });
    for (size_t at = 0; at < wire.size();) {
      const size_t piece = round == 0 ? 1 : 1 + random() % 17;
      reader.feed(std::string_view(wire).substr(at, piece));
      at += piece;
    }
    CHECK(events == expected);
  }
  sse_reader small([](std::string_view) {}, 100);
  CHECK_THROWS_AS(small.feed("data: " + std::string(200, 'x')), std::length_error);
}

TEST_CASE("our own events are exactly what clients compare with") {
  CHECK(sse_event("{}") == "data: {}\n\n");
  CHECK(sse_done == "data: [DONE]\n\n");
  CHECK(sse_ping == ": ping\n\n");
}

TEST_CASE("an echoed prompt's offsets count the text that is returned, and null begins it") {
  response_choice choice;
  choice.text = "hé";
  choice.logprobs = std::vector<token_logprobs>{
      {"<s>", std::nullopt, {}, 0}, {"h", -1, {}, 1}, {"\xC3", -2, {}, 1}, {"\xA9", -3, {}, 0}};
  const auto body = completion_body(head, std::span(&choice, 1), usage);
  CHECK(body.find(R"("token_logprobs":[null,-1.0,-2.0,-3.0],"top_logprobs":[null,{"h":-1.0},)"
                  R"({"bytes:\\xc3":-2.0},{"bytes:\\xa9":-3.0}],"text_offset":[0,0,1,2])")
        != std::string::npos);
}

TEST_CASE("log probabilities of prompts have vLLM's form: in choices, or beside those of a chat") {
  response_choice choice;
  choice.prompt_logprobs =
      prompt_candidates{{}, {{7, 3, -2.5, " sky"}, {9, 1, -0.5, "é"}}, {{1, 1, -INFINITY, "\xC3"}}};
  const std::string expected =
      R"("prompt_logprobs":[null,{"7":{"logprob":-2.5,"rank":3,"decoded_token":" sky"},)"
      "\"9\":{\"logprob\":-0.5,\"rank\":1,\"decoded_token\":\"é\"}},"
      "{\"1\":{\"logprob\":-9999.0,\"rank\":1,\"decoded_token\":\"\uFFFD\"}}]";
  const auto legacy = completion_body(head, std::span(&choice, 1), usage);
  CHECK(legacy.find("\"logprobs\":null," + expected + ",\"finish_reason\"") != std::string::npos);
  CHECK(chat_body(head, std::span(&choice, 1), usage).ends_with("," + expected + "}"));
}
