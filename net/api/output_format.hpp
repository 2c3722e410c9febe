/// The response format of a request (structured output).
#pragma once

#include "base/json_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// One kind of structured output.
struct output_format {
  enum class kind : uint8_t {
    json,   ///< any JSON object
    schema, ///< a JSON text valid for a schema
    regex,  ///< a text that matches a regular expression as a whole
    choice, ///< one of some texts
    grammar ///< a text of a grammar in EBNF or Lark
  };
  kind what = kind::json;
  std::string field;   ///< dotted path of the schema, expression, texts or grammar, for errors
  json_value schema{}; ///< schema
  std::string text{};  ///< regex, grammar: as it came
  std::vector<std::string> choices{}; ///< choice

  /// Equal for equivalent formats.
  std::string key() const;
};

/// Reads `response_format`, and the alternatives of other servers: `guided_json`, `guided_regex`,
/// `guided_choice`, `guided_grammar`, `structured_outputs` and `json_schema`. Nothing where the
/// output is unconstrained. Throws api_error, also when more than one is given.
std::optional<output_format> read_output_format(json_object_reader& body);

/// Reads a format whose fields stand beside its type, `{"type":"json_schema","schema":{...}}`, as
/// responses (`text.format`) and messages (`output_config.format`) have it: the member `key` of
/// `outer`. Nothing where it is absent or text.
std::optional<output_format> read_flat_format(json_object_reader& outer, std::string_view key);

} // namespace lamella::net
