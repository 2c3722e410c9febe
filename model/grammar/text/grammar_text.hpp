/// Grammars that a request brings as a text, in EBNF or in the notation of Lark.
#pragma once

#include "model/grammar/grammar.hpp"
#include "model/grammar/text/grammar_text_error.hpp"

#include <string_view>

namespace lamella::model {

inline constexpr size_t grammar_text_bytes_max = 64 << 10;

/// The texts of a grammar, followed by `next`. EBNF where a rule has `::=`: the start is `root`;
/// else Lark: the start is `start`. What is read of either is in docs/schemas.md. Throws
/// grammar_text_error, and grammar_error where it becomes too large.
///
/// Parsed by descent with a bound on nesting; the cost is linear in the text, but for counts of
/// terminals, which are rules. A rule that begins with itself becomes a repetition; where it does
/// so by way of others it is refused. Lark's terminals are read by a lexer, each as long as it can
/// be (grammar::terminal_end); EBNF's parts may match fewer characters than they could.
grammar::node_id grammar_of_text(grammar& g, std::string_view text, grammar::node_id next);

} // namespace lamella::model
