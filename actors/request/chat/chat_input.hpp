/// The input of a chat template from a request.
#pragma once

#include "actors/request/service.hpp"

namespace lamella::actors {

/// The conversation, the tools and the client's variables in the forms that the template of the
/// service renders. Forms that it does not render are converted: parts to one text, developer
/// messages to system, system messages into the user's, tools, calls and results to text.
model::template_input chat_input(const service& s, const std::vector<net::chat_message>& messages,
                                 const net::tool_use& tools, const json_value::object& more,
                                 bool add_generation_prompt);

/// Installs the chat template of a model in the service: compiled, with its abilities, or with the
/// error. Both are logged. No effect where the model has no template.
void use_chat_template(service& s, const std::string& source);

/// The text of a special token, as templates have it; empty where there is none.
std::string special_text(const service& s, std::optional<model::token_id> id);

} // namespace lamella::actors
