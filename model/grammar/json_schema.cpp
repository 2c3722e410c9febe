#include "model/grammar/json_schema.hpp"

#include "model/grammar/json_schema_compiler.hpp"
#include "model/grammar/json_schema_keywords.hpp"
#include "model/grammar/string_formats.hpp"
#include "model/json_writer.hpp"

#include <algorithm>

namespace lamella::model {

using node_id = grammar::node_id;

namespace {

constexpr size_t values_max = 20'000; ///< of an enumeration

} // namespace

node_id json_schema_grammar(grammar& g, const json_value& schema, node_id next) {
  json_schema_compiler compiler{g, schema};
  const auto first = compiler.value(schema, "", next);
  compiler.finish();
  return first;
}

node_id json_schema_compiler::value(const json_value& schema, const std::string& pointer,
                                    node_id next) {
  if (const auto* any = schema.get_if<bool>()) {
    if (!*any) throw json_schema_error(pointer, "is false: no value is possible");
    return json_.any_value(next);
  }
  const schema_view x{schema, pointer};
  if (x.has("$ref")) return reference(x, next);
  if (x.has("const") || x.has("enum")) return constants(x, next);
  if (x.has("anyOf")) return any_of(x, "anyOf", next);
  if (x.has("oneOf")) {
    check_exclusive(x);
    return any_of(x, "oneOf", next);
  }
  if (x.has("allOf")) return all_of(x, next);
  const auto types = x.types();
  if (types.empty()) return json_.any_value(next);
  std::vector<node_id> branches;
  for (const auto type : types) branches.push_back(of_type(x, type, next));
  return branches.size() == 1 ? branches[0] : grammar_.choice(std::move(branches));
}

node_id json_schema_compiler::of_type(const schema_view& x, json_type type, node_id next) {
  switch (type) {
  case json_type::object:
    return object(x, next);
  case json_type::array:
    return array(x, next);
  case json_type::string:
    return string(x, next);
  case json_type::number:
    return number(x, number_form::any, next);
  case json_type::integer:
    return number(x, number_form::integer, next);
  case json_type::boolean:
    return grammar_.choice({grammar_.text("true", next), grammar_.text("false", next)});
  case json_type::null:
    return grammar_.text("null", next);
  }
  return next;
}

// --- schemas made of others ----------------------------------------------------------------------

const json_value& json_schema_compiler::target(const schema_view& x) const {
  const auto ref = x.text("$ref").value_or("");
  const auto* found =
      ref == "#" || ref.starts_with("#/") ? resolve_pointer(root_, ref.substr(1)) : nullptr;
  if (found == nullptr)
    x.fail("$ref", "points at nothing in the schema; only references like #/$defs/NAME are read");
  return *found;
}

/// A rule of its own, so that schemas may refer to themselves.
node_id json_schema_compiler::reference(const schema_view& x, node_id next) {
  x.refuse_beside({"$ref"});
  const auto& schema = target(x);
  const auto pointer = x.text("$ref")->substr(1);
  auto known = rules_.find(pointer);
  if (known == rules_.end()) {
    known = rules_.emplace(pointer, grammar_.rule()).first;
    pending_.push_back({known->second, &schema, pointer});
  }
  return grammar_.call(known->second, next);
}

void json_schema_compiler::finish() {
  for (; !pending_.empty();) {
    const auto x = pending_.back();
    pending_.pop_back();
    grammar_.begin(x.rule, value(*x.schema, x.pointer, grammar_.end()));
  }
}

/// Values of one text share what they share; arrays and objects have spaces in them.
node_id json_schema_compiler::constants(const schema_view& x, node_id next) {
  x.refuse_beside({"enum", "const", "type"});
  const auto types = x.types();
  std::vector<std::string> texts;
  std::vector<node_id> branches;
  const auto add = [&](const json_value& value) {
    if (!types.empty() && !is_among(type_of(value), types)) return;
    const bool nests = type_of(value) == json_type::array || type_of(value) == json_type::object;
    if (nests)
      branches.push_back(json_.literal(value, next));
    else
      texts.push_back(to_json(value));
  };
  if (const auto* one = x.find("const")) {
    add(*one);
  } else {
    const auto& values = *x.array("enum");
    if (values.size() > values_max)
      x.fail("enum", "has " + std::to_string(values.size()) + " values, at most "
                         + std::to_string(values_max) + " are read");
    for (const auto& value : values) add(value);
  }
  if (branches.empty() && texts.empty()) x.fail("type", "fits none of the values");
  try {
    if (!texts.empty()) branches.push_back(grammar_.texts(std::move(texts), next));
  } catch (const grammar_error& e) {
    x.fail(x.has("enum") ? "enum" : "const", std::string{"cannot be read: "} + e.what());
  }
  return grammar_.choice(std::move(branches));
}

node_id json_schema_compiler::any_of(const schema_view& x, std::string_view keyword, node_id next) {
  x.refuse_beside({keyword});
  std::vector<node_id> branches;
  const auto& alternatives = *x.array(keyword);
  for (size_t i = 0; i < alternatives.size(); ++i)
    branches.push_back(value(alternatives[i], x.below(keyword) + "/" + std::to_string(i), next));
  return grammar_.choice(std::move(branches));
}

/// The schema behind references, as far as they are nothing else.
const json_value& json_schema_compiler::behind_references(const json_value& schema,
                                                          const std::string& pointer) const {
  constexpr int hops_max = 64;
  const auto* at = &schema;
  for (int hop = 0; at->find("$ref") != nullptr; ++hop) {
    const schema_view x{*at, pointer};
    if (hop == hops_max) x.fail("$ref", "leads to itself");
    at = &target(x);
  }
  return *at;
}

/// Alternatives exclude each other when their types do, or when they are objects with one required
/// member whose constants differ.
void json_schema_compiler::check_exclusive(const schema_view& x) const {
  const auto& alternatives = *x.array("oneOf");
  std::vector<json_type> seen;
  std::vector<const json_value*> objects;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const auto pointer = x.below("oneOf") + "/" + std::to_string(i);
    const auto& schema = behind_references(alternatives[i], pointer);
    const auto types = schema.get_if<json_value::object>() != nullptr
                           ? schema_view{schema, pointer}.types()
                           : std::vector<json_type>{};
    if (types.empty()) x.fail("oneOf", "has an alternative without a type; use anyOf");
    if (types.size() == 1 && types[0] == json_type::object) {
      objects.push_back(&schema);
      continue;
    }
    for (const auto t : types) {
      if (is_among(t, seen) || (t == json_type::number && is_among(json_type::integer, seen)))
        x.fail("oneOf", "has alternatives of the same type, so more than one may fit; use anyOf");
      seen.push_back(t);
    }
  }
  if (objects.size() > 1 && !tell_apart(objects))
    x.fail("oneOf", "has objects that no required member with different constants tells apart; "
                    "use anyOf");
}

bool json_schema_compiler::tell_apart(const std::vector<const json_value*>& objects) const {
  const auto* properties = objects[0]->find("properties");
  const auto* named = properties != nullptr ? properties->get_if<json_value::object>() : nullptr;
  if (named == nullptr) return false;
  return std::any_of(named->begin(), named->end(), [&](const auto& property) {
    std::vector<json_value> seen;
    return std::all_of(objects.begin(), objects.end(), [&](const json_value* object) {
      return has_own_constants(*object, property.first, seen);
    });
  });
}

/// Does `object` require the member, as one of constants that are not among `seen`? They are then.
bool json_schema_compiler::has_own_constants(const json_value& object, const std::string& member,
                                             std::vector<json_value>& seen) const {
  const auto* required = object.find("required");
  const auto* names = required != nullptr ? required->get_if<json_value::array>() : nullptr;
  if (names == nullptr
      || std::find(names->begin(), names->end(), json_value(member)) == names->end())
    return false;
  const auto* properties = object.find("properties");
  const auto* schema = properties != nullptr ? properties->find(member) : nullptr;
  if (schema == nullptr) return false;
  const auto& meant = behind_references(*schema, "");
  json_value::array values;
  if (const auto* one = meant.find("const"))
    values.push_back(*one);
  else if (const auto* list = meant.find("enum"); list != nullptr)
    if (const auto* items = list->get_if<json_value::array>()) values = *items;
  for (const auto& v : values) {
    if (std::find(seen.begin(), seen.end(), v) != seen.end()) return false;
    seen.push_back(v);
  }
  return !values.empty();
}

node_id json_schema_compiler::all_of(const schema_view& x, node_id next) {
  const auto& parts = *x.array("allOf");
  const auto pointer = x.below("allOf");
  const bool alone = [&] {
    for (const auto& [keyword, value] : *x.schema().get_if<json_value::object>())
      if (keyword == "type" || keyword == "properties" || keyword == "required"
          || keyword == "additionalProperties")
        return false;
    return true;
  }();
  if (parts.size() == 1 && alone) {
    x.refuse_beside({"allOf"});
    return value(parts[0], pointer + "/0", next);
  }
  x.refuse_beside({"allOf", "type", "properties", "required", "additionalProperties"});
  object_members members;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto at = pointer + "/" + std::to_string(i);
    const schema_view part{behind_references(parts[i], at), at};
    part.refuse_beside({"allOf", "type", "properties", "required", "additionalProperties"});
    if (part.has("allOf")) part.fail("allOf", "is not supported within allOf");
    add_members(part, members);
  }
  add_members(x, members);
  return object_of(x, members, next);
}

// --- numbers and strings -------------------------------------------------------------------------

node_id json_schema_compiler::number(const schema_view& x, number_form form, node_id next) {
  if (const auto* step = x.find("multipleOf"))
    if (form != number_form::integer || !(*step == json_value(1) || *step == json_value(1.0)))
      x.fail("multipleOf", "is not supported");
  number_bounds bounds;
  const auto read = [&](std::string_view keyword) -> std::optional<decimal> {
    const auto* value = x.find(keyword);
    if (value == nullptr) return {};
    auto result = decimal::from(*value);
    if (!result) x.fail(keyword, "must be a number of at most 18 digits before the point");
    return result;
  };
  if (x.has("minimum") && x.has("exclusiveMinimum"))
    x.fail("exclusiveMinimum", "is not supported beside minimum");
  if (x.has("maximum") && x.has("exclusiveMaximum"))
    x.fail("exclusiveMaximum", "is not supported beside maximum");
  bounds.above_low = x.has("exclusiveMinimum");
  bounds.below_high = x.has("exclusiveMaximum");
  bounds.low = read(bounds.above_low ? "exclusiveMinimum" : "minimum");
  bounds.high = read(bounds.below_high ? "exclusiveMaximum" : "maximum");
  return number_within(grammar_, form, bounds, next);
}

node_id json_schema_compiler::string(const schema_view& x, node_id next) {
  const auto pattern = x.text("pattern"), format = x.text("format");
  const auto min = x.count("minLength"), max = x.count("maxLength");
  if (pattern && (format || min || max))
    x.fail("pattern", "is not supported beside format, minLength and maxLength");
  if (format && (min || max)) x.fail("format", "is not supported beside minLength and maxLength");
  const auto quoted = [&](const regular_expression& e, regular_expression::match how) {
    return grammar_.text("\"", e.compile(grammar_, how, spelling::json, grammar_.text("\"", next)));
  };
  if (format) {
    const auto expression = format_expression(*format);
    if (expression.empty()) x.fail("format", "is not supported; known are " + format_names());
    return quoted(regular_expression::parse(expression), regular_expression::match::whole);
  }
  if (!pattern) {
    if (min.value_or(0) > max.value_or(grammar::unbounded))
      x.fail("maxLength", "is below minLength");
    return json_.string_of(min.value_or(0), max.value_or(grammar::unbounded), next);
  }
  try {
    return quoted(regular_expression::parse(*pattern), regular_expression::match::somewhere);
  } catch (const regular_expression_error& e) {
    x.fail("pattern", std::string{"is not supported: "} + e.what());
  }
}

} // namespace lamella::model
