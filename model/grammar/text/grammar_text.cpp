#include "model/grammar/text/grammar_text.hpp"

#include "model/grammar/text/text_cursor.hpp"

#include <string>

namespace lamella::model {

namespace {

/// Has a line a name and ::= behind it?
bool is_ebnf(std::string_view text) {
  for (auto at = text.find("::="); at != text.npos; at = text.find("::=", at + 1)) {
    const auto last = text.substr(0, at).rfind('\n');
    text_cursor line{text};
    line.at = last == text.npos ? 0 : last + 1;
    while (line.peek() == ' ' || line.peek() == '\t') ++line.at;
    const bool named = !line.name("-.").empty();
    while (line.peek() == ' ' || line.peek() == '\t') ++line.at;
    if (named && line.at == at) return true;
  }
  return false;
}

} // namespace

grammar::node_id grammar_of_text(grammar& g, std::string_view text, grammar::node_id next) {
  if (text.size() > grammar_text_bytes_max)
    throw grammar_text_error("it has " + std::to_string(text.size()) + " bytes, at most "
                             + std::to_string(grammar_text_bytes_max) + " are read");
  return compile_rules(g, is_ebnf(text) ? read_ebnf(text) : read_lark(text), text, next);
}

} // namespace lamella::model
