/// Part of a grammar: the texts that begin with a byte.
#pragma once

#include "model/grammar/grammar.hpp"

#include <optional>

namespace lamella::model {

/// Of the texts from `from` on, those that begin with `byte`; nothing where there are none. The
/// grammar grows by what can come first. Rules that allow the empty text count as if they did not.
std::optional<grammar::node_id> beginning_with(grammar& g, grammar::node_id from, uint8_t byte);

} // namespace lamella::model
