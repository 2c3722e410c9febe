/// What a chat template is given of a request.
#pragma once

#include "actors/request/service.hpp"

namespace lamella::actors {

/// The conversation, the tools and the client's variables in the forms that the template of the
/// service shows. What it would not show is told in another way: parts as one text, a developer as
/// the system, the system within what the user says, tools, calls and results as text.
model::template_input chat_input(const service& s, const std::vector<net::chat_message>& messages,
                                 const net::tool_use& tools, const json_value::object& more,
                                 bool add_generation_prompt);

/// Takes the chat template of a model into the service: compiled, with what it can do, or why it
/// cannot be used. Both are logged. Nothing where the model has none.
void use_chat_template(service& s, const std::string& source);

/// The text of a special token, as templates have it; empty where there is none.
std::string special_text(const service& s, std::optional<model::token_id> id);

} // namespace lamella::actors
