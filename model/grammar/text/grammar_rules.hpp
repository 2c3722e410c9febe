/// The rules of a grammar that was read from a text.
#pragma once

#include "model/grammar/grammar.hpp"
#include "model/grammar/text/grammar_parts.hpp"

#include <string_view>

namespace lamella::model {

/// Nodes for all rules; the first one of the start, followed by `next`. Throws grammar_text_error.
grammar::node_id compile_rules(grammar& g, grammar_rules rules, std::string_view source,
                               grammar::node_id next);

/// Reads rules. Throw grammar_text_error.
grammar_rules read_ebnf(std::string_view source);
grammar_rules read_lark(std::string_view source);

} // namespace lamella::model
