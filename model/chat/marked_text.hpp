/// Free text up to a mark, as a grammar.
#pragma once

#include "model/grammar/grammar.hpp"

#include <optional>
#include <string>

namespace lamella::model {

/// Any text in which `mark` is not, then the mark, then `behind`. `end`: or the text ends before
/// the mark. `other`: what is no such text although it may seem so: the whole does not begin with
/// it. Neither is empty. Nodes: linear in both.
grammar::node_id text_up_to(grammar& g, const std::string& mark, grammar::node_id behind,
                            std::optional<grammar::node_id> end, const std::string& other = {});

} // namespace lamella::model
