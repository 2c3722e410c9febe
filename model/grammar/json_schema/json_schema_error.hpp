/// What is wrong with a JSON Schema.
#pragma once

#include <stdexcept>
#include <string>

namespace lamella::model {

/// The schema asks for something that a grammar here cannot promise, or is no schema.
struct json_schema_error : std::runtime_error {
  json_schema_error(std::string at, const std::string& why)
      : std::runtime_error((at.empty() ? std::string{"the schema"} : at) + " " + why),
        pointer{std::move(at)}, problem{why} {}
  std::string pointer; ///< JSON pointer to what is wrong, within the schema
  std::string problem;
};

} // namespace lamella::model
