/// Answers of the Responses API.
#pragma once

#include "net/api/answer_writer.hpp"
#include "net/api/responses/responses_request.hpp"

#include <functional>
#include <memory>
#include <string>

namespace lamella::net {

/// Gets the body of a finished response, and what the assistant said.
using keep_response = std::function<void(const std::string& body, chat_message answer)>;

/// Writes a response: one body, or numbered events that end with `response.completed`,
/// `response.incomplete` (the answer's bound was reached) or `response.failed`. `keep` is called
/// once for an answer that is complete; empty: nobody wants it.
std::shared_ptr<answer_writer> make_responses_writer(response_head head, response_facts facts,
                                                     keep_response keep = {});

/// The answer to who has deleted a kept response.
std::string deleted_response_body(std::string_view id);

} // namespace lamella::net
