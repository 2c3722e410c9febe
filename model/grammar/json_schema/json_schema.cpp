#include "model/grammar/json_schema/json_schema.hpp"

#include "base/json_writer.hpp"
#include "model/grammar/json_schema/json_schema_compiler.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/string_formats.hpp"

#include <algorithm>

namespace lamella::model {

using node_id = grammar::node_id;

namespace {

constexpr size_t values_max = 20'000; ///< of an enumeration

} // namespace

node_id json_schema_grammar(grammar& g, const json_value& schema, node_id next) {
  json_schema_compiler compiler{g, schema};
  if (schema == json_value(false)) throw json_schema_error("", "is false: no value is possible");
  const auto first = compiler.value(schema, "", next);
  compiler.finish();
  return first;
}

void json_schema_compiler::spend(const std::string& pointer, uint64_t steps) {
  constexpr size_t bytes_of_step = 32, shown_bytes_max = 512;
  steps_ += steps + pointer.size() / bytes_of_step;
  if (steps_ > steps_max)
    throw json_schema_error(pointer.substr(0, shown_bytes_max),
                            "is where compiling takes more than " + std::to_string(steps_max)
                                + " steps; use a smaller schema, with shorter names");
}

node_id json_schema_compiler::value(const json_value& schema, const std::string& pointer,
                                    node_id next) {
  spend(pointer);
  const bool is_rule = schema.get_if<bool>() == nullptr
                       && (depth_ == inline_depth_max || !inlined_.insert(&schema).second);
  if (is_rule) return grammar_.call(rule_of(schema, pointer), next);
  ++depth_;
  const auto first = compiled(schema, pointer, next);
  --depth_;
  return first;
}

grammar::rule_id json_schema_compiler::rule_of(const json_value& schema,
                                               const std::string& pointer) {
  const auto [known, is_new] = rules_.try_emplace(&schema);
  if (is_new) {
    spend(pointer);
    known->second = grammar_.rule();
    pending_.push_back({known->second, {&schema, pointer}});
  }
  return known->second;
}

void json_schema_compiler::finish() {
  while (!pending_.empty()) {
    const auto x = std::move(pending_.back());
    pending_.pop_back();
    grammar_.begin(x.rule, compiled(*x.place.schema, x.place.pointer, grammar_.end()));
  }
}

template <class Build>
node_id json_schema_compiler::shared(const std::string& key, const Build& build, node_id next) {
  auto known = shared_.find(key);
  if (known == shared_.end()) {
    known = shared_.emplace(key, grammar_.rule()).first;
    grammar_.begin(known->second, build(grammar_.end()));
  }
  return grammar_.call(known->second, next);
}

node_id json_schema_compiler::compiled(const json_value& schema, const std::string& pointer,
                                       node_id next) {
  if (const auto* any = schema.get_if<bool>())
    return *any ? json_.any_value(next) : grammar_.choice(); // of nothing
  const schema_view x{schema, pointer};
  if (x.has("$ref")) {
    x.refuse_beside({"$ref"});
    const auto target = references_.target(x);
    return grammar_.call(rule_of(*target.schema, target.pointer), next);
  }
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
    const auto* list = x.array("enum");
    const auto key = value_key(*one, number_reading::exact);
    const auto is_same = [&](const auto& y) { return value_key(y, number_reading::exact) == key; };
    if (list != nullptr && std::none_of(list->begin(), list->end(), is_same))
      x.fail("const", "is not one of the values of enum");
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
  if (std::all_of(alternatives.begin(), alternatives.end(),
                  [](const auto& schema) { return schema == json_value(false); }))
    x.fail(keyword, "has no alternative but false: no value is possible");
  for (size_t i = 0; i < alternatives.size(); ++i)
    branches.push_back(value(alternatives[i], x.below(keyword) + "/" + std::to_string(i), next));
  return grammar_.choice(std::move(branches));
}

schema_place json_schema_compiler::behind_references(schema_place place) {
  std::unordered_set<const json_value*> met;
  while (place.schema->find("$ref") != nullptr) {
    const schema_view x{*place.schema, place.pointer};
    x.refuse_beside({"$ref"});
    if (!met.insert(place.schema).second) x.fail("$ref", "leads to itself");
    spend(place.pointer);
    place = references_.target(x);
  }
  return place;
}

node_id json_schema_compiler::all_of(const schema_view& x, node_id next) {
  const auto& schemas = *x.array("allOf");
  std::vector<schema_place> parts;
  for (size_t i = 0; i < schemas.size(); ++i) {
    const schema_place part{&schemas[i], x.below("allOf") + "/" + std::to_string(i)};
    if (*part.schema == json_value(false))
      throw json_schema_error(part.pointer, "is false: no value is possible");
    if (!takes_anything(*part.schema)) parts.push_back(part);
  }
  const bool alone = [&] {
    for (const auto& [keyword, value] : *x.schema().get_if<json_value::object>())
      if (keyword != "allOf" && !is_annotation(keyword)) return false;
    return true;
  }();
  if (alone && parts.empty()) return json_.any_value(next);
  if (alone && parts.size() == 1) return value(*parts[0].schema, parts[0].pointer, next);
  const auto refuse_others = [](const schema_view& view) {
    view.refuse_beside({"allOf", "type", "properties", "required", "additionalProperties"});
  };
  refuse_others(x);
  std::vector<schema_view> views;
  for (const auto& part : parts) {
    const auto place = behind_references(part);
    if (takes_anything(*place.schema)) continue;
    views.emplace_back(*place.schema, place.pointer);
    refuse_others(views.back());
    if (views.back().has("allOf")) views.back().fail("allOf", "is not supported within allOf");
  }
  views.push_back(x);
  const auto members = members_of(views);
  return members.silent() ? json_.any_object(next) : object_of(members, next);
}

// --- numbers and strings -------------------------------------------------------------------------

node_id json_schema_compiler::number(const schema_view& x, number_form form, node_id next) {
  if (const auto* step = x.find("multipleOf"))
    if (form != number_form::integer || !(*step == json_value(1) || *step == json_value(1.0)))
      x.fail("multipleOf", "is not supported");
  const auto read = [&](std::string_view inclusive, std::string_view exclusive, bound_side side) {
    if (x.has(inclusive) && x.has(exclusive))
      x.fail(exclusive, "is not supported beside " + std::string(inclusive));
    const auto keyword = x.has(exclusive) ? exclusive : inclusive;
    const auto* value = x.find(keyword);
    if (value == nullptr) return std::optional<decimal>{};
    auto bound = bound_of(*value, form, side, keyword == exclusive);
    if (!bound) x.fail(keyword, "must be a number of at most 18 digits before the point");
    return bound;
  };
  const number_bounds bounds{read("minimum", "exclusiveMinimum", bound_side::low),
                             read("maximum", "exclusiveMaximum", bound_side::high)};
  if (!any_within(form, bounds))
    x.fail(x.has("maximum") ? "maximum" : "exclusiveMaximum",
           std::string{"leaves no "} + (form == number_form::integer ? "whole " : "")
               + "number above the lower bound");
  const auto name = [](const std::optional<decimal>& bound) {
    return bound
               ? (bound->negative ? "-" : "") + std::to_string(bound->whole) + "." + bound->fraction
               : "";
  };
  const auto key = (form == number_form::integer ? "integer from " : "number from ")
                   + name(bounds.low) + " to " + name(bounds.high);
  return shared(
      key, [&](node_id end) { return number_within(grammar_, form, bounds, end); }, next);
}

node_id json_schema_compiler::string(const schema_view& x, node_id next) {
  const auto pattern = x.text("pattern"), format = x.text("format");
  const auto min = x.count("minLength"), max = x.count("maxLength");
  if (pattern && (format || min || max))
    x.fail("pattern", "is not supported beside format, minLength and maxLength");
  if (format && (min || max)) x.fail("format", "is not supported beside minLength and maxLength");
  using match = regular_expression::match;
  const auto quoted = [&](const std::string& expression, match how) {
    const auto key = (how == match::whole ? "whole " : "somewhere ") + expression;
    return shared(
        key,
        [&](node_id end) {
          const auto parsed = regular_expression::parse(expression);
          return grammar_.text(
              "\"", parsed.compile(grammar_, how, spelling::json, grammar_.text("\"", end)));
        },
        next);
  };
  if (format) {
    const auto expression = format_expression(*format);
    if (expression.empty()) x.fail("format", "is not supported; known are " + format_names());
    return quoted(std::string(expression), match::whole);
  }
  if (!pattern) {
    if (min.value_or(0) > max.value_or(grammar::unbounded))
      x.fail("maxLength", "is below minLength");
    return json_.string_of(min.value_or(0), max.value_or(grammar::unbounded), next);
  }
  try {
    return quoted(*pattern, match::somewhere);
  } catch (const regular_expression_error& e) {
    x.fail("pattern", std::string{"is not supported: "} + e.what());
  }
}

} // namespace lamella::model
