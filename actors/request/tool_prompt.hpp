/// Tools in a conversation for models whose chat template knows none.
#pragma once

#include "model/chat/tool_dialect.hpp"
#include "net/api/api_request.hpp"

#include <vector>

namespace lamella::actors {

/// The conversation in messages of text alone: the system message tells of the tools and how to
/// call them, calls are what the assistant has said, and their results what the user says next.
std::vector<net::chat_message> told_as_text(std::vector<net::chat_message> messages,
                                            const net::tool_use& tools,
                                            const model::tool_dialect& dialect);

} // namespace lamella::actors
