/// Answers of Anthropic's Messages API.
#pragma once

#include "net/api/answer_writer.hpp"

#include <memory>
#include <string>

namespace lamella::net {

/// Writes a message: one body, or the events from `message_start` to `message_stop`. `clipped`:
/// the context has less room than `max_tokens` asked for, so that an answer of full length has
/// filled the context.
std::shared_ptr<answer_writer> make_messages_writer(response_head head, bool clipped);

/// The body of /v1/messages/count_tokens.
std::string token_count_body(uint64_t tokens);

} // namespace lamella::net
