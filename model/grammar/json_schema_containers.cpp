// Objects and arrays are built from their end, so that what follows a member or an item is one
// node, however many ways lead there.
#include "model/grammar/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

constexpr size_t name_bytes_max = 256;

/// What is left of a count of items when some are there.
uint32_t rest_of(uint32_t count, size_t there) {
  if (count == grammar::unbounded) return count;
  return count > there ? count - static_cast<uint32_t>(there) : 0;
}

} // namespace

// --- objects -------------------------------------------------------------------------------------

void json_schema_compiler::add_members(const schema_view& x, object_members& members) const {
  if (const auto types = x.types(); x.has("type") && !is_among(json_type::object, types))
    x.fail("type", "must be object here");
  if (const auto* named = x.object("properties"))
    for (const auto& [name, schema] : *named) {
      if (name.size() > name_bytes_max)
        x.fail("properties",
               "has a name of more than " + std::to_string(name_bytes_max) + " bytes");
      const bool known = std::any_of(members.properties.begin(), members.properties.end(),
                                     [&](const auto& p) { return p.name == name; });
      if (known) x.fail("properties", "has " + name + ", which another part of allOf has as well");
      members.properties.push_back(
          {name, &schema, x.below("properties") + "/" + pointer_part(name)});
    }
  if (const auto* required = x.find("required")) {
    const auto* names = required->get_if<json_value::array>();
    if (names == nullptr) x.fail("required", "must be an array of names");
    for (const auto& name : *names) {
      const auto* text = name.get_if<std::string>();
      if (text == nullptr || text->size() > name_bytes_max)
        x.fail("required",
               "must be an array of names of at most " + std::to_string(name_bytes_max) + " bytes");
      members.required.insert(*text);
    }
  }
  if (const auto* none = x.find("unevaluatedProperties");
      none != nullptr && !(*none == json_value(false)))
    x.fail("unevaluatedProperties", "is not supported");
  if (const auto* others = x.find("additionalProperties")) {
    if (*others == json_value(false)) {
      members.closed = true;
    } else {
      members.others = others;
      members.others_pointer = x.below("additionalProperties");
    }
  }
}

node_id json_schema_compiler::object(const schema_view& x, node_id next) {
  object_members members;
  add_members(x, members);
  const bool counted = x.has("minProperties") || x.has("maxProperties");
  const bool silent = members.properties.empty() && members.required.empty() && !members.closed;
  if (silent && !members.others && !counted) return json_.any_object(next);
  if (!counted) return object_of(x, members, next);
  if (!silent)
    x.fail(x.has("minProperties") ? "minProperties" : "maxProperties",
           "is only supported where there are no properties");
  return map_of(x, members, next);
}

node_id json_schema_compiler::property(const object_members::property& p, node_id next) {
  const auto of_value =
      p.schema != nullptr ? value(*p.schema, p.pointer, next) : json_.any_value(next);
  return json_.literal(json_value(p.name), grammar_.text(":", json_.space(of_value)));
}

node_id json_schema_compiler::object_of(const schema_view& x, object_members& members,
                                        node_id next) {
  for (const auto& name : members.required) {
    const bool known = std::any_of(members.properties.begin(), members.properties.end(),
                                   [&](const auto& p) { return p.name == name; });
    if (!known && members.closed)
      x.fail("required", "has " + name + ", which is none of the properties");
    if (!known) members.properties.push_back({name, members.others, members.others_pointer});
  }
  const auto close = grammar_.text("}", next), spaced_close = json_.space(close);
  auto behind = spaced_close; // there are members before
  auto first = close;         // there are none
  if (members.others != nullptr && !members.closed) {
    std::vector<std::string> taken;
    for (const auto& p : members.properties) taken.push_back(p.name);
    behind = grammar_.choice();
    const auto member = json_.other_key(
        taken,
        grammar_.text(":", json_.space(value(*members.others, members.others_pointer, behind))));
    grammar_.branch(behind, {grammar_.text(",", json_.space(member)), spaced_close});
    first = grammar_.maybe(member, close);
  }
  for (size_t i = members.properties.size(); i-- > 0;) {
    const auto& p = members.properties[i];
    const auto member = property(p, behind);
    const auto another = grammar_.text(",", json_.space(member));
    const bool required = members.required.contains(p.name);
    behind = required ? another : grammar_.maybe(another, behind);
    first = required ? member : grammar_.maybe(member, first);
  }
  return grammar_.text("{", json_.space(first));
}

/// An object of any keys.
node_id json_schema_compiler::map_of(const schema_view& x, const object_members& members,
                                     node_id next) {
  const auto min = x.count("minProperties").value_or(0);
  const auto max = x.count("maxProperties").value_or(grammar::unbounded);
  if (max < min) x.fail("maxProperties", "is below minProperties");
  const auto close = grammar_.text("}", next);
  if (max == 0) return grammar_.text("{", json_.space(close));
  const auto member = [&](node_id behind) {
    const auto of_value = members.others != nullptr
                              ? value(*members.others, members.others_pointer, behind)
                              : json_.any_value(behind);
    return json_.any_string(grammar_.text(":", json_.space(of_value)));
  };
  const auto another = grammar_.rule();
  grammar_.begin(another, grammar_.text(",", json_.space(member(grammar_.end()))));
  const auto first =
      member(grammar_.repeat(another, rest_of(min, 1), rest_of(max, 1), json_.space(close)));
  return grammar_.text("{", json_.space(min == 0 ? grammar_.maybe(first, close) : first));
}

// --- arrays --------------------------------------------------------------------------------------

node_id json_schema_compiler::array(const schema_view& x, node_id next) {
  if (const auto* unique = x.find("uniqueItems");
      unique != nullptr && !(*unique == json_value(false)))
    x.fail("uniqueItems", "is not supported");
  const auto min = x.count("minItems").value_or(0);
  const auto max = x.count("maxItems").value_or(grammar::unbounded);
  if (max < min) x.fail("maxItems", "is below minItems");
  static const json_value::array nothing;
  const auto& prefix = x.has("prefixItems") ? *x.array("prefixItems") : nothing;
  const auto* items = x.find("items");
  const bool more = items == nullptr || !(*items == json_value(false));
  const auto item = [&](size_t i, node_id behind) {
    if (i < prefix.size())
      return value(prefix[i], x.below("prefixItems") + "/" + std::to_string(i), behind);
    return items != nullptr ? value(*items, x.below("items"), behind) : json_.any_value(behind);
  };
  const auto close = grammar_.text("]", next), spaced_close = json_.space(close);
  if (max == 0) return grammar_.text("[", json_.space(close));
  if (!more && min > prefix.size())
    x.fail("minItems", "is above the number of prefixItems, and items is false");

  // Behind the items that have a schema of their own, and the first of the others.
  const auto named = std::min<size_t>(prefix.size(), max);
  const auto there = std::max<size_t>(named, more ? 1 : 0);
  auto behind = spaced_close;
  if (more && rest_of(max, there) > 0) {
    const auto another = grammar_.rule();
    grammar_.begin(another, grammar_.text(",", json_.space(item(prefix.size(), grammar_.end()))));
    behind = grammar_.repeat(another, rest_of(min, there), rest_of(max, there), spaced_close);
  }
  auto first = behind;
  for (size_t i = there; i-- > 0;) {
    first = item(i, behind);
    const auto another = grammar_.text(",", json_.space(first));
    behind = i < min ? another : grammar_.maybe(another, spaced_close);
  }
  return grammar_.text("[", json_.space(min == 0 ? grammar_.maybe(first, close) : first));
}

} // namespace lamella::model
