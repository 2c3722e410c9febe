#include "model/grammar/json_schema/json_schema_keywords.hpp"

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

namespace lamella::model {

namespace {

/// Say which values are taken, and cannot be kept to.
constexpr std::array<std::string_view, 4> refused{"propertyDependencies", "extends", "disallow",
                                                  "divisibleBy"};

/// Which type a keyword is about.
constexpr std::array<std::pair<std::string_view, json_type>, 28> about{{
    {"properties", json_type::object},
    {other_member, json_type::object},
    {"required", json_type::object},
    {"additionalProperties", json_type::object},
    {"patternProperties", json_type::object},
    {"propertyNames", json_type::object},
    {"minProperties", json_type::object},
    {"maxProperties", json_type::object},
    {"unevaluatedProperties", json_type::object},
    {"items", json_type::array},
    {"prefixItems", json_type::array},
    {"additionalItems", json_type::array},
    {"unevaluatedItems", json_type::array},
    {"contains", json_type::array},
    {"minItems", json_type::array},
    {"maxItems", json_type::array},
    {"uniqueItems", json_type::array},
    {"minLength", json_type::string},
    {"maxLength", json_type::string},
    {"pattern", json_type::string},
    {"format", json_type::string},
    {not_pattern, json_type::string},
    {not_among, json_type::string},
    {"minimum", json_type::number},
    {"maximum", json_type::number},
    {"exclusiveMinimum", json_type::number},
    {"exclusiveMaximum", json_type::number},
    {"multipleOf", json_type::number},
}};

/// Beside them, what other schemas are named by.
constexpr std::array<std::string_view, 13> others{
    "anyOf",       "oneOf", "allOf", "$ref", "$dynamicRef",       "$recursiveRef",
    "not",         "if",    "then",  "else", "dependentRequired", "dependentSchemas",
    "dependencies"};

constexpr std::array<std::pair<std::string_view, json_type>, 7> type_names{{
    {"object", json_type::object},
    {"array", json_type::array},
    {"string", json_type::string},
    {"number", json_type::number},
    {"integer", json_type::integer},
    {"boolean", json_type::boolean},
    {"null", json_type::null},
}};

const std::pair<std::string_view, json_type>* find_about(std::string_view keyword) {
  const auto* found =
      std::find_if(about.begin(), about.end(), [&](const auto& x) { return x.first == keyword; });
  return found == about.end() ? nullptr : found;
}

bool is_one_of(std::string_view keyword, const auto& list) {
  return std::find(list.begin(), list.end(), keyword) != list.end();
}

} // namespace

bool is_annotation(std::string_view keyword) {
  return !is_own_keyword(keyword) && !is_one_of(keyword, others) && !is_one_of(keyword, refused);
}

bool is_own_keyword(std::string_view keyword) {
  return find_about(keyword) != nullptr || keyword == "type" || keyword == "enum"
         || keyword == "const";
}

bool takes_anything(const json_value& schema) {
  if (const auto* any = schema.get_if<bool>()) return *any;
  const auto* members = schema.get_if<json_value::object>();
  return members != nullptr
         && std::all_of(members->begin(), members->end(),
                        [](const auto& member) { return is_annotation(member.first); });
}

schema_view::schema_view(const json_value& schema, std::string pointer)
    : schema_{schema}, pointer_{std::move(pointer)} {
  const auto* members = schema.get_if<json_value::object>();
  if (members == nullptr)
    throw json_schema_error(pointer_,
                            "must be an object or a boolean, not " + std::string(schema.kind()));
  for (const auto& [keyword, value] : *members)
    if (is_one_of(keyword, refused)) fail(keyword, "is not supported");
}

std::string schema_view::below(std::string_view keyword) const {
  return pointer_ + "/" + pointer_part(keyword);
}

void schema_view::fail(std::string_view keyword, const std::string& problem) const {
  throw json_schema_error(below(keyword), problem);
}

std::optional<uint32_t> schema_view::count(std::string_view keyword) const {
  const auto* value = find(keyword);
  if (value == nullptr) return {};
  try {
    return json_as<uint32_t>(*value, "it", {0, 1'000'000'000});
  } catch (const json_field_error&) {
    fail(keyword, "must be a whole number from 0 to 1000000000, not " + to_json(*value));
  }
}

const json_value::array* schema_view::array(std::string_view keyword) const {
  const auto* value = find(keyword);
  if (value == nullptr) return nullptr;
  const auto* items = value->get_if<json_value::array>();
  if (items == nullptr || items->empty()) fail(keyword, "must be an array that is not empty");
  return items;
}

const json_value::object* schema_view::object(std::string_view keyword) const {
  const auto* value = find(keyword);
  if (value == nullptr) return nullptr;
  const auto* members = value->get_if<json_value::object>();
  if (members == nullptr) fail(keyword, "must be an object, not " + std::string(value->kind()));
  return members;
}

std::optional<std::string> schema_view::text(std::string_view keyword) const {
  const auto* value = find(keyword);
  if (value == nullptr) return {};
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) fail(keyword, "must be a string, not " + std::string(value->kind()));
  return *text;
}

std::vector<json_type> schema_view::types() const {
  std::vector<json_type> result;
  const auto add = [&](json_type t) {
    if (std::find(result.begin(), result.end(), t) == result.end()) result.push_back(t);
  };
  const auto named = [&](const json_value& name) {
    const auto* text = name.get_if<std::string>();
    for (const auto& [word, type] : type_names)
      if (text != nullptr && *text == word) return add(type);
    fail("type", "must be one of object, array, string, number, integer, boolean and null, or an "
                 "array of them, not "
                     + to_json(name));
  };
  const auto* type = find("type");
  if (type == nullptr) return {};
  if (type->get_if<json_value::array>() != nullptr)
    for (const auto& name : *array("type")) named(name);
  else
    named(*type);
  return result;
}

std::vector<json_type> schema_view::types_about() const {
  std::vector<json_type> result;
  for (const auto& [keyword, value] : *schema_.get_if<json_value::object>())
    if (const auto* x = find_about(keyword);
        x != nullptr && std::find(result.begin(), result.end(), x->second) == result.end())
      result.push_back(x->second);
  return result;
}

std::string pointer_part(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

json_type type_of(const json_value& value) {
  if (value.get_if<json_value::object>() != nullptr) return json_type::object;
  if (value.get_if<json_value::array>() != nullptr) return json_type::array;
  if (value.get_if<std::string>() != nullptr) return json_type::string;
  if (value.get_if<bool>() != nullptr) return json_type::boolean;
  if (value.is_null()) return json_type::null;
  const auto* d = value.get_if<double>();
  return d != nullptr && *d != std::trunc(*d) ? json_type::number : json_type::integer;
}

std::optional<double> number_of(const json_value& value) {
  if (const auto* i = value.get_if<int64_t>()) return static_cast<double>(*i);
  if (const auto* u = value.get_if<uint64_t>()) return static_cast<double>(*u);
  if (const auto* d = value.get_if<double>()) return *d;
  if (const auto* big = value.get_if<big_integer>()) return big->nearest();
  return {};
}

namespace {

std::string number_key(const json_value& value, double read, number_reading how) {
  const bool is_written = value.get_if<double>() == nullptr && how == number_reading::exact;
  if (is_written) return to_json(value);
  if (read != std::trunc(read)) return to_json(json_value(read));
  if (read == 0) read = 0; // of either sign
  // Whole ones in the digits that integers have.
  std::array<char, 400> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), read,
                                       std::chars_format::fixed)
                             .ptr};
}

} // namespace

std::string value_key(const json_value& value, number_reading how) {
  if (const auto read = number_of(value)) return number_key(value, *read, how);
  std::string key;
  if (const auto* items = value.get_if<json_value::array>()) {
    for (const auto& x : *items) key += (key.empty() ? "[" : ",") + value_key(x, how);
    return key.empty() ? "[]" : key + "]";
  }
  if (const auto* members = value.get_if<json_value::object>()) {
    std::map<std::string_view, std::string> by_name;
    for (const auto& [name, x] : *members) by_name.emplace(name, value_key(x, how));
    for (const auto& [name, x] : by_name)
      key += (key.empty() ? "{" : ",") + to_json(json_value(name)) + ":" + x;
    return key.empty() ? "{}" : key + "}";
  }
  return to_json(value);
}

bool is_among(json_type type, const std::vector<json_type>& types) {
  return std::any_of(types.begin(), types.end(), [type](json_type t) {
    return t == type || (t == json_type::number && type == json_type::integer);
  });
}

} // namespace lamella::model
