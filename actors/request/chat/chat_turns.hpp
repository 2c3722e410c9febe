/// Messages in the turns that a chat template takes.
#pragma once

#include "model/chat/chat_abilities.hpp"
#include "net/api/api_values.hpp"

#include <vector>

namespace lamella::actors {

/// Instructions by roles that the template shows, calls one by one and turns joined where it
/// refuses several: what clients send may come in any order of roles. Each text is there once, in
/// its order, but for instructions that come late: they stand before what the user says next.
/// Cost: linear in the texts.
std::vector<net::chat_message> in_known_turns(std::vector<net::chat_message> messages,
                                              const model::chat_abilities& can);

/// Results in the order of their calls, whatever order they come in: a template may show them
/// without ids.
std::vector<net::chat_message> with_results_in_order(std::vector<net::chat_message> messages);

/// Calls and their results by ids of the form that the template takes, counted through the
/// conversation, whatever the client calls them.
std::vector<net::chat_message> with_known_ids(std::vector<net::chat_message> messages,
                                              model::call_ids form);

} // namespace lamella::actors
