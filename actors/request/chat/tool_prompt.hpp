/// Tools in a conversation for models whose chat template has no tools.
#pragma once

#include "model/chat/tool_dialect.hpp"
#include "net/api/api_request.hpp"

#include <vector>

namespace lamella::actors {

/// The conversation in text messages only: the system message describes the tools and how to call
/// them, calls become assistant messages, and their results user messages.
std::vector<net::chat_message> told_as_text(std::vector<net::chat_message> messages,
                                            const net::tool_use& tools,
                                            const model::tool_dialect& dialect);

} // namespace lamella::actors
