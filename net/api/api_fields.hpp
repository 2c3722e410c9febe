/// The parts of request bodies that several routes share; used by the parsers of
/// net/api/api_request.
#pragma once

#include "base/json_reader.hpp"
#include "net/api/api_values.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// Handles unread fields, at any depth: internal names are 400, unknown ones are 400 when strict,
/// else returned, each once.
std::vector<std::string> take_unknown(const json_object_reader& body, const api_limits& limits);

/// sampling, lengths, n, stop, streaming: all but logprobs, which differ by route.
generation_params read_generation(json_object_reader& body, const api_limits& limits,
                                  uint32_t max_tokens_min);

/// Checks across several fields.
void check_combinations(const generation_params& params, size_t prompts, const api_limits& limits);

/// The `messages` of a chat.
std::vector<chat_message> read_messages(json_object_reader& body, const api_limits& limits);

/// `chat_template_kwargs`: identifier keys, 8 KiB, scalars or shallow values. Keys that are
/// fields of the request or tokens of the model are refused; those of functions hide these.
json_value::object read_template_kwargs(json_object_reader& body);

/// An array of token ids below limits.vocabulary.
std::vector<uint32_t> read_token_ids(const json_value& value, const std::string& path,
                                     const api_limits& limits, size_t min, size_t max);

} // namespace lamella::net
