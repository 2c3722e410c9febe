#include "net/api/output_format.hpp"

#include "base/json_writer.hpp"
#include "net/api/unsupported_fields.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::net {

using kind = output_format::kind;

namespace {

constexpr size_t regex_bytes_max = 4'096, choices_max = 1'024, choice_bytes_max = 4'096,
                 grammar_bytes_max = 65'536;

/// A schema as an object, or as the text of one.
json_value schema_at(const json_value& value, const std::string& path) {
  if (const auto* text = value.get_if<std::string>()) {
    try {
      return parse_json(*text);
    } catch (const json_syntax_error& e) {
      throw invalid_value(path, path + " is a string, but not JSON text: " + e.what());
    }
  }
  return value;
}

output_format choice_at(const json_value& value, const std::string& path) {
  output_format out{kind::choice, path};
  const auto& items = json_items(value, path, {1, choices_max});
  for (size_t i = 0; i < items.size(); ++i)
    out.choices.push_back(json_string(items[i], json_index(path, i), {1, choice_bytes_max}));
  return out;
}

output_format regex_at(const json_value& value, const std::string& path) {
  output_format out{kind::regex, path};
  out.text = json_string(value, path, {1, regex_bytes_max});
  return out;
}

output_format grammar_at(const json_value& value, const std::string& path) {
  output_format out{kind::grammar, path};
  out.text = json_string(value, path, {1, grammar_bytes_max});
  return out;
}

/// Names of llama.cpp and SGLang ask for nothing with an empty text.
bool is_empty(const json_value& value) {
  const auto* text = value.get_if<std::string>();
  return text != nullptr && text->empty();
}

output_format schema_format(const json_value& value, const std::string& path) {
  output_format out{kind::schema, path};
  out.schema = schema_at(value, path);
  return out;
}

std::optional<output_format> response_format(json_object_reader& body) {
  const auto* value = body.find("response_format");
  if (value == nullptr) return {};
  json_object_reader format(*value, "response_format", body);
  const auto type = format.required_string("type", {1, 64});
  if (type == "text") return {};
  if (type == "json_object") {
    // As some servers have it, a schema may stand beside the type.
    if (const auto* schema = format.find("schema"))
      return schema_format(*schema, format.path("schema"));
    return output_format{kind::json, "response_format"};
  }
  if (type != "json_schema")
    throw unsupported_parameter(
        format.path("type"), "response_format.type must be text, json_object or json_schema, not "
                                 + to_json(json_value(type)));
  json_object_reader named(format.require("json_schema"), format.path("json_schema"), format);
  named.required_string("name", {1, 64});
  named.optional_string("description");
  named.optional<bool>("strict"); // the output is always held to the schema
  return schema_format(named.require("schema"), named.path("schema"));
}

std::optional<output_format> structured_outputs(json_object_reader& body) {
  const auto* value = body.find("structured_outputs");
  if (value == nullptr) return {};
  json_object_reader wanted(*value, "structured_outputs", body);
  std::vector<output_format> found;
  if (const auto* x = wanted.find("json")) found.push_back(schema_format(*x, wanted.path("json")));
  if (const auto* x = wanted.find("regex")) found.push_back(regex_at(*x, wanted.path("regex")));
  if (const auto* x = wanted.find("choice")) found.push_back(choice_at(*x, wanted.path("choice")));
  if (const auto* x = wanted.find("grammar"))
    found.push_back(grammar_at(*x, wanted.path("grammar")));
  if (wanted.optional<bool>("json_object").value_or(false))
    found.push_back({kind::json, "structured_outputs"});
  constexpr unsupported_field others[] = {{"structural_tag", ""},
                                          {"disable_fallback", "true false"},
                                          {"disable_any_whitespace", "false"},
                                          {"disable_additional_properties", "true false"},
                                          {"whitespace_pattern", ""}};
  refuse_unsupported(wanted, others);
  if (found.size() != 1)
    throw invalid_value(
        "structured_outputs",
        "structured_outputs must have one of json, regex, choice, grammar and json_object");
  return found.front();
}

} // namespace

std::string output_format::key() const {
  switch (what) {
  case kind::json:
    return "json";
  case kind::schema:
    return "schema " + to_json(schema);
  case kind::regex:
    return "regex " + text;
  case kind::choice: {
    json_value::array texts(choices.begin(), choices.end());
    return "choice " + to_json(json_value(std::move(texts)));
  }
  case kind::grammar:
    return "grammar " + text;
  }
  return {};
}

std::optional<output_format> read_flat_format(json_object_reader& outer, std::string_view key) {
  const auto* value = outer.find(key);
  if (value == nullptr) return {};
  json_object_reader format(*value, outer.path(key), outer);
  const auto type = format.required_string("type", {1, 64});
  if (type == "text") return {};
  if (type == "json_object") return output_format{kind::json, outer.path(key)};
  if (type != "json_schema")
    throw unsupported_parameter(
        format.path("type"), format.path("type") + " must be text, json_object or json_schema, not "
                                 + to_json(json_value(type)));
  format.optional_string("name", {1, 64});
  format.optional_string("description");
  format.optional<bool>("strict"); // the output is always held to the schema
  return schema_format(format.require("schema"), format.path("schema"));
}

std::optional<output_format> read_output_format(json_object_reader& body) {
  std::vector<output_format> found;
  if (auto x = response_format(body)) found.push_back(std::move(*x));
  if (auto x = structured_outputs(body)) found.push_back(std::move(*x));
  for (const auto* name : {"guided_json", "json_schema"})
    if (const auto* x = body.find(name)) found.push_back(schema_format(*x, name));
  if (const auto* x = body.find("guided_regex")) found.push_back(regex_at(*x, "guided_regex"));
  if (const auto* x = body.find("guided_grammar"))
    found.push_back(grammar_at(*x, "guided_grammar"));
  if (const auto* x = body.find("regex"); x && !is_empty(*x))
    found.push_back(regex_at(*x, "regex"));
  for (const auto* name : {"grammar", "ebnf"})
    if (const auto* x = body.find(name); x && !is_empty(*x)) found.push_back(grammar_at(*x, name));
  if (const auto* x = body.find("guided_choice")) found.push_back(choice_at(*x, "guided_choice"));
  if (found.empty()) return {};
  if (found.size() > 1)
    throw invalid_value(found[1].field, found[1].field + " is not allowed together with "
                                            + found[0].field + ": use one format");
  return std::move(found.front());
}

} // namespace lamella::net
