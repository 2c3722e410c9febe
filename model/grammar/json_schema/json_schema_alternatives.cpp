// oneOf as a choice: right where every value of one alternative is none of any other. What matters
// is which values an alternative takes by the standard, which without `type` are all those that its
// keywords are not about, and not only those that its grammar has.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>
#include <bitset>

namespace lamella::model {

namespace {

constexpr size_t types_count = 7;
/// A bit for each type; number stands for numbers that have a fraction.
using type_set = std::bitset<types_count>;

size_t bit_of(json_type type) { return static_cast<size_t>(type); }

type_set set_of(const std::vector<json_type>& types) {
  type_set set;
  for (const auto t : types) {
    set.set(bit_of(t));
    if (t == json_type::number) set.set(bit_of(json_type::integer));
  }
  return set;
}

/// The values of which a value of the schema is one; none where it does not say.
std::vector<const json_value*> constants_of(const json_value& schema) {
  std::vector<const json_value*> values;
  const auto* list = schema.find("enum");
  const auto* items = list != nullptr ? list->get_if<json_value::array>() : nullptr;
  if (const auto* one = schema.find("const"))
    values.push_back(one);
  else if (items != nullptr)
    for (const auto& x : *items) values.push_back(&x);
  return values;
}

} // namespace

struct json_schema_compiler::alternative {
  schema_place place;
  type_set written; ///< of the values that the grammar has
  type_set taken;   ///< of the values that the schema takes
};

json_schema_compiler::alternative json_schema_compiler::alternative_of(const schema_place& place) {
  const auto all = type_set{}.set();
  if (const auto* any = place.schema->get_if<bool>())
    return {place, *any ? all : type_set{}, *any ? all : type_set{}};
  const schema_view x{*place.schema, place.pointer};
  if (const auto values = constants_of(*place.schema); !values.empty()) {
    type_set set;
    for (const auto* value : values) set.set(bit_of(type_of(*value)));
    return {place, set, set};
  }
  const auto about = set_of(x.types());
  if (x.has("type")) return {place, about, about};
  const bool combined = x.has("anyOf") || x.has("oneOf") || x.has("allOf");
  return {place, combined || about.none() ? all : about, all};
}

void json_schema_compiler::check_exclusive(const schema_view& x) {
  std::vector<alternative> alternatives;
  const auto& schemas = *x.array("oneOf");
  for (size_t i = 0; i < schemas.size(); ++i)
    alternatives.push_back(alternative_of(
        behind_references({&schemas[i], x.below("oneOf") + "/" + std::to_string(i)})));
  for (size_t type = 0; type < types_count; ++type) {
    std::vector<schema_place> taking;
    bool written = false, said = true;
    for (const auto& a : alternatives) {
      written = written || a.written[type];
      said = said && (!a.taken[type] || !a.taken.all());
      if (a.taken[type]) taking.push_back(a.place);
    }
    if (!written || taking.size() < 2 || tell_apart(taking, type == bit_of(json_type::object)))
      continue;
    if (!said)
      x.fail("oneOf", "has an alternative without a type, which may fit beside another; "
                      "give it a type, or use anyOf");
    if (type == bit_of(json_type::object))
      x.fail("oneOf", "has objects that no required member with different constants tells apart; "
                      "use anyOf");
    x.fail("oneOf", "has alternatives of the same type, so more than one may fit; use anyOf");
  }
}

/// Are they different constants, or objects with a required member whose constants differ?
bool json_schema_compiler::tell_apart(const std::vector<schema_place>& schemas, bool objects) {
  std::unordered_set<std::string> seen;
  if (std::all_of(schemas.begin(), schemas.end(),
                  [&](const auto& x) { return has_own_constants(x, seen); }))
    return true;
  const auto* properties = schemas[0].schema->find("properties");
  const auto* named = properties != nullptr ? properties->get_if<json_value::object>() : nullptr;
  if (!objects || named == nullptr) return false;
  return std::any_of(named->begin(), named->end(), [&](const auto& property) {
    seen.clear();
    return std::all_of(schemas.begin(), schemas.end(), [&](const schema_place& object) {
      const auto member = required_member(object, property.first);
      return member.schema != nullptr && has_own_constants(behind_references(member), seen);
    });
  });
}

/// The schema of the member that `object` requires; none where it does not.
schema_place json_schema_compiler::required_member(const schema_place& object,
                                                   const std::string& name) {
  const auto* required = object.schema->find("required");
  const auto* names = required != nullptr ? required->get_if<json_value::array>() : nullptr;
  const auto* properties = object.schema->find("properties");
  const auto* named = properties != nullptr ? properties->get_if<json_value::object>() : nullptr;
  if (names == nullptr || named == nullptr) return {};
  spend(object.pointer, 1 + (names->size() + named->size()) / 16);
  if (std::find(names->begin(), names->end(), json_value(name)) == names->end()) return {};
  return {properties->find(name), object.pointer + "/properties/" + pointer_part(name)};
}

/// Is a value of the schema one of constants that are not among `seen`? They are then.
bool json_schema_compiler::has_own_constants(const schema_place& place,
                                             std::unordered_set<std::string>& seen) {
  const auto values = constants_of(*place.schema);
  std::unordered_set<std::string> own;
  for (const auto* value : values) {
    auto key = value_key(*value, number_reading::as_doubles);
    spend(place.pointer, 1 + key.size() / 16);
    if (seen.contains(key)) return false;
    own.insert(std::move(key));
  }
  seen.merge(own);
  return !values.empty();
}

} // namespace lamella::model
