/// Bodies of Anthropic's Messages API as checked values.
#pragma once

#include "net/api/api_values.hpp"

#include <string_view>

namespace lamella::net {

/// A body of POST /v1/messages in the terms of chats: `system` is the first message, results of
/// tools are messages of the role tool. Throws api_error (400, with param and code).
chat_request parse_messages_request(std::string_view body, const api_limits& limits);

/// A body of POST /v1/messages/count_tokens: what becomes the prompt, and nothing of the answer.
chat_request parse_count_tokens_request(std::string_view body, const api_limits& limits);

} // namespace lamella::net
