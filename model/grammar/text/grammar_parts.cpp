#include "model/grammar/text/grammar_parts.hpp"

#include "model/grammar/text/grammar_text_error.hpp"

#include <algorithm>
#include <string>

namespace lamella::model {

void fail_at(std::string_view source, size_t at, const std::string& why) {
  const auto before = source.substr(0, std::min(at, source.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto last = before.rfind('\n');
  const auto column = before.size() - (last == before.npos ? 0 : last + 1) + 1;
  throw grammar_text_error("line " + std::to_string(line) + ", column " + std::to_string(column)
                           + ": " + why);
}

regular_expression parse_expression(const std::string& text, size_t at, std::string_view source) {
  try {
    return regular_expression::parse(text);
  } catch (const regular_expression_error& e) {
    fail_at(source, at, std::string{"in the expression: "} + e.what());
  }
}

} // namespace lamella::model
