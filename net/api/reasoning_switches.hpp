/// What a request says of reasoning, as variables of the chat template.
#pragma once

#include "net/api/api_values.hpp"

#include <string>

namespace lamella::net {

/// Whether the model shall reason: the template's `enable_thinking` and `thinking`, where it reads
/// them. What `chat_template_kwargs` says holds. False: the template reads neither.
bool tell_thinking(chat_request& to, bool wanted, const api_limits& limits);

/// `reasoning_effort` of a chat, `reasoning.effort` of a response, `output_config.effort` of a
/// message, by the template's variable `reasoning_effort`: low, medium or high for the words of
/// which templates have these alone (minimal, xhigh, max), others as they are. "none": no
/// reasoning, and the lowest effort where the template cannot leave it out. Where the template
/// reads no such variable, the field `name` is one of `to.unknown`.
void tell_effort(chat_request& to, const std::string& effort, const std::string& name,
                 const api_limits& limits);

} // namespace lamella::net
