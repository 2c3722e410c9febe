#include "net/api/responses/responses_writer.hpp"

#include "base/json.hpp"
#include "base/json_writer.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::net;

namespace {

const response_head head{"resp_1", 1700000000, "m", "lamella-1"};
const usage_counts usage{12, 7, 4};

response_facts facts_of_plain() {
  response_facts facts;
  facts.text = R"({"format":{"type":"text"}})";
  facts.reasoning = R"({"effort":null})";
  return facts;
}

/// Texts one behind the other, made in that order: events count.
std::string in_order(std::initializer_list<std::string> parts) {
  std::string all;
  for (const auto& part : parts) all += part;
  return all;
}

/// The data of events in their order; names must be those of the data.
std::vector<json_value> events_of(const std::string& stream) {
  std::vector<json_value> result;
  for (size_t from = 0; from < stream.size();) {
    const auto end = stream.find("\n\n", from);
    REQUIRE(end != std::string::npos);
    const auto event = stream.substr(from, end - from);
    from = end + 2;
    const auto data = event.find("\ndata: ");
    REQUIRE(event.starts_with("event: "));
    REQUIRE(data != std::string::npos);
    result.push_back(parse_json(event.substr(data + 7)));
    CHECK(*result.back().find("type")->get_if<std::string>() == event.substr(7, data - 7));
  }
  return result;
}

std::string types_of(const std::vector<json_value>& events) {
  std::string all;
  for (size_t i = 0; i < events.size(); ++i) {
    CHECK(*events[i].find("sequence_number")->get_if<int64_t>() == static_cast<int64_t>(i));
    auto type = *events[i].find("type")->get_if<std::string>();
    if (type.starts_with("response.")) type.erase(0, 9);
    all += (i > 0 ? " " : "") + type;
  }
  return all;
}

} // namespace

TEST_CASE("a whole response has the published form") {
  const auto writer = make_responses_writer(head, facts_of_plain());
  response_choice choice;
  choice.text = "hi";
  CHECK(
      writer->body(std::span(&choice, 1), usage, nullptr)
      == R"({"id":"resp_1","object":"response","created_at":1700000000,"status":"completed",)"
         R"("background":false,"error":null,"incomplete_details":null,"model":"m","output":[)"
         R"({"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[)"
         R"({"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}],)"
         R"("instructions":null,"max_output_tokens":null,"max_tool_calls":null,)"
         R"("parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,)"
         R"("reasoning":{"effort":null},"safety_identifier":null,"service_tier":"default",)"
         R"("store":true,"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto",)"
         R"("tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","user":null,)"
         R"("metadata":{},"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":4,)"
         R"("cache_write_tokens":0},"output_tokens":7,"output_tokens_details":)"
         R"({"reasoning_tokens":0},"total_tokens":19},"system_fingerprint":"lamella-1"})");
}

TEST_CASE("calls are items of their own, and an answer that was cut is incomplete") {
  std::string kept;
  chat_message said;
  const auto writer = make_responses_writer(head, facts_of_plain(),
                                            [&](const std::string& body, chat_message answer) {
                                              kept = body;
                                              said = std::move(answer);
                                            });
  response_choice choice;
  choice.text = "see";
  choice.tool_calls = {{"call_a", "f", "{\"x\":"}};
  choice.reason = finish_reason::length;
  const auto text = writer->body(std::span(&choice, 1), usage, nullptr);
  const auto body = parse_json(text);
  CHECK(*body.find("status")->get_if<std::string>() == "incomplete");
  CHECK(*body.find("incomplete_details")->find("reason")->get_if<std::string>()
        == "max_output_tokens");
  const auto& output = *body.find("output")->get_if<json_value::array>();
  REQUIRE(output.size() == 2);
  CHECK(*output[0].find("status")->get_if<std::string>() == "completed");
  CHECK(*output[1].find("status")->get_if<std::string>() == "incomplete");
  CHECK(*output[1].find("id")->get_if<std::string>() == "fc_a");
  CHECK(*output[1].find("call_id")->get_if<std::string>() == "call_a");
  CHECK(kept == text);
  CHECK(said.content == "see");
  REQUIRE(said.tool_calls.size() == 1);
  CHECK(said.tool_calls[0].name == "f");
}

TEST_CASE("the events of a response come in the published order, numbered") {
  auto facts = facts_of_plain();
  facts.logprobs = true;
  const auto writer = make_responses_writer(head, facts);
  const std::vector<token_logprobs> token{{"hi", -0.5, {}}};
  const auto events = events_of(
      in_order({writer->begin(0, {12, 0, 0}), writer->text(0, "h", &token, {}),
                writer->text(0, "i", &token, {}), writer->call(0, 0, "call_a", "f", {}),
                writer->arguments(0, 0, "{}", nullptr, {}),
                writer->finish(0, finish_reason::tool_calls, {}, {}), writer->end(usage)}));
  CHECK(types_of(events)
        == "created in_progress output_item.added content_part.added output_text.delta "
           "output_text.delta output_text.done content_part.done output_item.done "
           "output_item.added function_call_arguments.delta function_call_arguments.done "
           "output_item.done completed");
  CHECK(*events[4].find("item_id")->get_if<std::string>() == "msg_1");
  CHECK(events[4].find("logprobs")->get_if<json_value::array>()->size() == 1);
  CHECK(*events[6].find("text")->get_if<std::string>() == "hi");
  CHECK(events[6].find("logprobs")->get_if<json_value::array>()->size() == 2);
  CHECK(*events[9].find("output_index")->get_if<int64_t>() == 1);
  CHECK(*events[11].find("arguments")->get_if<std::string>() == "{}");
  const auto& response = *events.back().find("response");
  CHECK(response.find("output")->get_if<json_value::array>()->size() == 2);
  CHECK(*response.find("usage")->find("total_tokens")->get_if<int64_t>() == 19);
}

TEST_CASE("reasoning is an item before the message, whole and in events") {
  auto facts = facts_of_plain();
  std::string kept;
  chat_message said;
  const auto keep = [&](const std::string& body, chat_message answer) {
    kept = body;
    said = std::move(answer);
  };
  const auto writer = make_responses_writer(head, facts, keep);
  const auto events = events_of(
      in_order({writer->begin(0, {}), writer->text(0, "", nullptr, {}),
                writer->reasoning(0, "wh", nullptr, {}), writer->reasoning(0, "y", nullptr, {}),
                writer->text(0, "", nullptr, {}), writer->text(0, "hi", nullptr, {}),
                writer->finish(0, finish_reason::stop, {}, {}), writer->end({12, 7, 4, 3})}));
  CHECK(types_of(events)
        == "created in_progress output_item.added content_part.added reasoning_text.delta "
           "reasoning_text.delta reasoning_text.done content_part.done output_item.done "
           "output_item.added content_part.added output_text.delta output_text.done "
           "content_part.done output_item.done completed");
  CHECK(to_json(*events[2].find("item"))
        == R"({"id":"rs_1","type":"reasoning","status":"in_progress","summary":[],"content":[]})");
  CHECK(to_json(*events[3].find("part")) == R"({"type":"reasoning_text","text":""})");
  CHECK(*events[4].find("content_index")->get_if<int64_t>() == 0);
  CHECK(*events[6].find("text")->get_if<std::string>() == "why");
  CHECK(*events[9].find("output_index")->get_if<int64_t>() == 1);
  CHECK(said.reasoning == "why");
  CHECK(said.content == "hi");
  const auto& response = *events.back().find("response");
  CHECK(*response.find("usage")
             ->find("output_tokens_details")
             ->find("reasoning_tokens")
             ->get_if<int64_t>()
        == 3);

  response_choice choice;
  choice.reasoning = "why";
  choice.text = "hi";
  const auto whole = parse_json(
      make_responses_writer(head, facts, keep)->body(std::span(&choice, 1), usage, nullptr));
  CHECK(to_json(*whole.find("output")) == to_json(*response.find("output")));
  choice.text.clear();
  choice.reason = finish_reason::length; // cut within
  const auto cut =
      parse_json(make_responses_writer(head, facts)->body(std::span(&choice, 1), usage, nullptr));
  CHECK(to_json(*cut.find("output"))
        == R"([{"id":"rs_1","type":"reasoning","status":"incomplete","summary":[],"content":[)"
           R"({"type":"reasoning_text","text":"why"}]}])");
}

TEST_CASE("reasoning behind a message is an item behind it, whole and in events") {
  chat_message said;
  const auto keep = [&](const std::string&, chat_message answer) { said = std::move(answer); };
  const auto writer = make_responses_writer(head, facts_of_plain(), keep);
  const auto events = events_of(
      in_order({writer->begin(0, {}), writer->reasoning(0, "a", nullptr, {}),
                writer->text(0, "b", nullptr, {}), writer->reasoning(0, "\n\n", nullptr, {}),
                writer->reasoning(0, "c", nullptr, {}), writer->text(0, "\n\nd", nullptr, {}),
                writer->call(0, 0, "call_a", "f", {}), writer->arguments(0, 0, "{}", nullptr, {}),
                writer->reasoning(0, "\n\ne", nullptr, {}),
                writer->finish(0, finish_reason::stop, {}, {}), writer->end(usage)}));
  std::string order;
  for (const auto& event : events) {
    const auto type = *event.find("type")->get_if<std::string>();
    const auto at = [&] { return std::to_string(*event.find("output_index")->get_if<int64_t>()); };
    if (type.ends_with(".added") && event.find("item") != nullptr)
      order += *event.find("item")->find("id")->get_if<std::string>() + "@" + at() + " ";
    if (type.ends_with("text.delta"))
      order += at() + ":" + *event.find("delta")->get_if<std::string>() + " ";
  }
  CHECK(order == "rs_1@0 0:a msg_1@1 1:b rs_1_1@2 2:c msg_1_1@3 3:d fc_a@4 rs_1_2@5 5:e ");
  CHECK(said.reasoning == "a\n\nc\n\ne");
  CHECK(said.content == "b\n\nd");

  response_choice choice; // the same but for what is behind the call
  choice.reasoning = "a\n\nc";
  choice.text = "b\n\nd";
  choice.ends = {{1, 1}};
  choice.tool_calls = {{"call_a", "f", "{}"}};
  const auto whole = parse_json(
      make_responses_writer(head, facts_of_plain())->body(std::span(&choice, 1), usage, nullptr));
  auto streamed = *events.back().find("response")->find("output")->get_if<json_value::array>();
  streamed.pop_back();
  CHECK(to_json(*whole.find("output")) == to_json(streamed));
}

TEST_CASE("a response without a word has an empty message, and one that fails says why") {
  const auto silent = make_responses_writer(head, facts_of_plain());
  CHECK(types_of(events_of(
            in_order({silent->begin(0, {}), silent->finish(0, finish_reason::length, {}, {}),
                      silent->end(usage)})))
        == "created in_progress output_item.added content_part.added output_text.done "
           "content_part.done output_item.done incomplete");
  const auto failing = make_responses_writer(head, facts_of_plain());
  const auto events = events_of(in_order({failing->begin(0, {}), failing->text(0, "a", nullptr, {}),
                                          failing->error(internal_error("broken"), "req-1")}));
  CHECK(types_of(events)
        == "created in_progress output_item.added content_part.added output_text.delta failed");
  const auto& response = *events.back().find("response");
  CHECK(*response.find("status")->get_if<std::string>() == "failed");
  CHECK(*response.find("error")->find("code")->get_if<std::string>() == "server_error");
  CHECK(*response.find("error")->find("message")->get_if<std::string>() == "broken");
  CHECK(response.find("output")->get_if<json_value::array>()->size() == 1);
}

TEST_CASE("a response that fails names what failed: the prompt, a rate or the server") {
  const auto code_of = [](const api_error& error) {
    const auto writer = make_responses_writer(head, facts_of_plain());
    const auto events = events_of(in_order({writer->begin(0, {}), writer->error(error, "req-1")}));
    return *events.back().find("response")->find("error")->find("code")->get_if<std::string>();
  };
  CHECK(code_of(deadline_exceeded("too late")) == "server_error");
  CHECK(code_of(queue_full(1000)) == "rate_limit_exceeded");
  CHECK(code_of(bad_request("the format is too ambiguous")) == "invalid_prompt");
}
