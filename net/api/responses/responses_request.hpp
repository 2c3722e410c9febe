/// Bodies of the Responses API as checked values.
#pragma once

#include "net/api/api_values.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// What a response repeats of its request. Values are kept as the text of their JSON, of which the
/// request's memory is a known part.
struct response_facts {
  std::optional<std::string> instructions;
  std::optional<uint32_t> max_output_tokens;
  std::string previous_id; ///< of the response that it continues; empty: none
  std::string tools = "[]";
  std::string tool_choice = R"("auto")";
  std::string text;      ///< format and verbosity
  std::string reasoning; ///< effort and summary
  std::string metadata = "{}";
  std::string user = "null", safety_identifier = "null", prompt_cache_key = "null";
  bool parallel_tool_calls = true;
  bool store = true; ///< the response may be continued and asked for
  double temperature = 1, top_p = 1;
  uint32_t top_logprobs = 0;
  bool logprobs = false; ///< the texts have log probabilities

  /// Of what has no bound of its own but that of a body.
  size_t bytes() const {
    return (instructions ? instructions->size() : 0) + tools.size() + tool_choice.size()
           + text.size() + reasoning.size() + metadata.size();
  }
};

struct responses_request {
  /// The request in the terms of chats. Its messages are those of `input`; `facts.instructions`
  /// stand before all others.
  chat_request chat;
  response_facts facts;
};

/// Throws api_error (400, with param and code).
responses_request parse_responses_request(std::string_view body, const api_limits& limits);

/// The items of `input`, or its text, as messages: calls belong to the assistant's message before
/// them, reasoning to the one behind it. None where `previous_response_id` is given without an
/// input. Items that only servers with tools of their own know are 400 with their place.
std::vector<chat_message> read_input_items(json_object_reader& body, const api_limits& limits);

} // namespace lamella::net
