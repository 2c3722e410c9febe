/// Template text to tokens, with the white-space rules of trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model::jinja {

enum class token_kind : uint8_t {
  data,           ///< text outside of tags
  variable_begin, ///< {{
  variable_end,
  block_begin, ///< {%
  block_end,
  name,
  string,   ///< `text` is the decoded value
  integer,  ///< `whole`
  floating, ///< `real`
  symbol,   ///< an operator or bracket in `text`
  end
};

struct token {
  token_kind kind = token_kind::end;
  uint32_t line = 1;
  std::string text;
  int64_t whole = 0;
  double real = 0;
};

/// All tokens of a template, the last one `end`. Comments and raw tags are resolved. Throws
/// chat_template_error (syntax). Linear in the text.
std::vector<token> tokenize(std::string_view source);

} // namespace lamella::model::jinja
