// Objects and arrays are built from their end, so that what follows a member or an item is one
// node, however many ways lead there.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

/// What is left of a count of items when some are there.
uint32_t rest_of(uint32_t count, size_t there) {
  if (count == grammar::unbounded) return count;
  return count > there ? count - static_cast<uint32_t>(there) : 0;
}

} // namespace

// --- objects -------------------------------------------------------------------------------------

node_id json_schema_compiler::object(const schema_view& x, node_id next) {
  const auto members = members_of({x});
  if (x.has("minProperties") || x.has("maxProperties")) return map_of(x, members, next);
  return members.silent() ? json_.any_object(next) : object_of(members, next);
}

node_id json_schema_compiler::value_at(const schema_place& place, node_id next) {
  return place.schema != nullptr ? value(*place.schema, place.pointer, next)
                                 : json_.any_value(next);
}

node_id json_schema_compiler::property(const object_members::property& p, node_id next) {
  return json_.literal(json_value(p.name),
                       grammar_.text(":", json_.space(value_at(p.value, next))));
}

node_id json_schema_compiler::object_of(const object_members& members, node_id next) {
  const auto close = grammar_.text("}", next), spaced_close = json_.space(close);
  auto behind = spaced_close; // there are members before
  auto first = close;         // there are none
  if (members.others.schema != nullptr && !members.closed()) {
    std::vector<std::string> taken;
    for (const auto& p : members.properties) taken.push_back(p.name);
    behind = grammar_.choice();
    const auto member =
        json_.other_key(taken, grammar_.text(":", json_.space(value_at(members.others, behind))));
    grammar_.branch(behind, {grammar_.text(",", json_.space(member)), spaced_close});
    first = grammar_.maybe(member, close);
  }
  for (size_t i = members.properties.size(); i-- > 0;) {
    const auto& p = members.properties[i];
    if (p.impossible()) continue;
    const auto member = property(p, behind);
    const auto another = grammar_.text(",", json_.space(member));
    behind = !p.required.empty() ? another : grammar_.maybe(another, behind);
    first = !p.required.empty() ? member : grammar_.maybe(member, first);
  }
  return grammar_.text("{", json_.space(first));
}

/// An object of any keys.
node_id json_schema_compiler::map_of(const schema_view& x, const object_members& members,
                                     node_id next) {
  const auto min = x.count("minProperties").value_or(0);
  const auto max = members.closed() ? 0 : x.count("maxProperties").value_or(grammar::unbounded);
  if (!members.properties.empty())
    x.fail(x.has("minProperties") ? "minProperties" : "maxProperties",
           "is only supported where there are no properties");
  if (max < min)
    x.fail("minProperties", members.closed()
                                ? "is above 0, and " + members.others.pointer + " allows no members"
                                : "is above maxProperties");
  if (min > 1)
    x.fail("minProperties",
           "is only supported up to 1: two members may have the same name, and count as one");
  const auto close = grammar_.text("}", next);
  if (max == 0) return grammar_.text("{", json_.space(close));
  const auto member = grammar_.rule(), another = grammar_.rule();
  grammar_.begin(member, json_.any_string(grammar_.text(
                             ":", json_.space(value_at(members.others, grammar_.end())))));
  grammar_.begin(another, grammar_.text(",", json_.space(grammar_.call(member, grammar_.end()))));
  const auto first = grammar_.call(
      member, grammar_.repeat(another, rest_of(min, 1), rest_of(max, 1), json_.space(close)));
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
  // The first item and the others have one rule, not two copies of what may be large.
  const bool twice = items != nullptr && prefix.empty() && rest_of(max, 1) > 0;
  const auto item = [&](size_t i, node_id behind) {
    if (i < prefix.size())
      return value(prefix[i], x.below("prefixItems") + "/" + std::to_string(i), behind);
    if (twice) return grammar_.call(rule_of(*items, x.below("items")), behind);
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
