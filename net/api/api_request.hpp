/// Request bodies of the API as checked values. Pure: JSON text in, value or api_error out.
#pragma once

#include "net/api/api_values.hpp"

namespace lamella::net {

/// All throw api_error (400, with param and code).
chat_request parse_chat_request(std::string_view body, const api_limits& limits);
completion_request parse_completion_request(std::string_view body, const api_limits& limits);
tokenize_request parse_tokenize_request(std::string_view body, const api_limits& limits);
detokenize_request parse_detokenize_request(std::string_view body, const api_limits& limits);
chaos_request parse_chaos_request(std::string_view body);
/// {"pool":"attention","members":3}, with "partition" or "kv_bytes" where these shall change
scale_request parse_scale_request(std::string_view body);
/// {"worker":"attention-1"}: its name or its seat.
std::string parse_drain_request(std::string_view body);

/// 400 where a format or a required call is to hold for an answer that goes on with a message.
void refuse_rest_of_format(const chat_request& request);

/// The number of tokens each choice may generate, given the prompt length: the requested one, else
/// what fits, at most limits.default_max_tokens. Throws prompt_too_long beyond
/// limits.prompt_tokens, context_length_exceeded when prompt and answer do not fit into `context`
/// (of the prompt, or where that alone would fit, of the answer's length; a prompt without an
/// answer may fill it), and invalid_value when n x prompts x the result breaks
/// limits.tokens_per_request or min_tokens exceeds the result.
uint32_t resolve_max_tokens(const generation_params& params, uint64_t prompt_tokens,
                            uint64_t context, size_t prompts, const api_limits& limits,
                            std::string_view prompt_field = "messages");

/// 415 unless the headers do not describe the body, or declare it as unencoded JSON.
void check_content(const http_headers& headers);

} // namespace lamella::net
