/// What a request holds its output to.
#pragma once

#include "base/json_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// One of the ways in which a body may ask for structured output.
struct output_format {
  enum class kind : uint8_t {
    json,   ///< any JSON object
    schema, ///< a JSON text that a schema takes
    regex,  ///< a text that is all of a regular expression
    choice  ///< one of some texts
  };
  kind what = kind::json;
  std::string field;   ///< dotted path of the schema, expression or texts, for errors
  json_value schema{}; ///< schema
  std::string regex{}; ///< regex
  std::vector<std::string> choices{}; ///< choice

  /// The same for formats that mean the same.
  std::string key() const;
};

/// Reads `response_format`, and what other servers have beside it: `guided_json`, `guided_regex`,
/// `guided_choice`, `structured_outputs` and `json_schema`. Nothing where the output is free.
/// Throws api_error; when more than one is given, too.
std::optional<output_format> read_output_format(json_object_reader& body);

} // namespace lamella::net
