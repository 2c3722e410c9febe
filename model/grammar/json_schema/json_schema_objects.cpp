// Objects are built from their end, so that what follows a member is one node, however many ways
// lead there. Members that have a name come in the order in which they are named, and others, whose
// names are those of an automaton, behind them.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

using node_id = grammar::node_id;
using part = demand::part;

namespace {

constexpr size_t name_bytes_max = 256;
constexpr size_t counted_members_max = 20'000; ///< members by counts of members before them

} // namespace

namespace {

void check_name(const schema_view& x, const std::string& name, std::string_view keyword) {
  if (name.size() > name_bytes_max)
    x.fail(keyword, "has a name of more than " + std::to_string(name_bytes_max) + " bytes");
}

} // namespace

void json_schema_compiler::add_names(const schema_view& x, object_members& out) {
  for (const auto* keyword :
       {"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"})
    out.says_others = out.says_others || x.has(keyword);
  if (const auto min = x.count("minProperties"); min.value_or(0) > out.min) {
    out.min = *min;
    out.min_at = {&x.schema(), x.below("minProperties")};
  }
  out.max = std::min(out.max, x.count("maxProperties").value_or(grammar::unbounded));
}

json_schema_compiler::object_members
json_schema_compiler::members_of(const std::vector<schema_view>& views) {
  object_members out;
  std::unordered_map<std::string_view, size_t> known;
  const auto member = [&](const std::string& name) -> object_members::member& {
    const auto [at, is_new] = known.try_emplace(name, out.named.size());
    if (is_new) out.named.push_back({name, {}, {}});
    return out.named[at->second];
  };
  for (const auto& x : views) add_names(x, out);
  for (const auto& x : views)
    if (const auto* named = x.object("properties")) {
      out.has_properties = out.has_properties || named->empty();
      for (const auto& [name, schema] : *named) {
        check_name(x, name, "properties");
        member(name);
        out.has_properties = out.has_properties || !(schema == json_value(false));
      }
    }
  for (const auto& x : views) {
    const auto* required = x.find("required");
    if (required == nullptr) continue;
    const auto* names = required->get_if<json_value::array>();
    if (names == nullptr) x.fail("required", "must be an array of names");
    for (const auto& one : *names) {
      const auto* name = one.get_if<std::string>();
      if (name == nullptr) x.fail("required", "must be an array of names");
      check_name(x, *name, "required");
      if (auto& m = member(*name); m.required.empty()) m.required = x.below("required");
    }
  }
  for (auto& m : out.named) m.value = member_demands(views, m.name);
  return out;
}

bool json_schema_compiler::matches_name(const schema_view& x, const std::string& expression,
                                        const std::string& name) {
  spend(x.pointer(), 1 + name.size() / 16);
  return automaton_of(x, expression, regular_expression::match::somewhere).matches(name);
}

/// What `x` demands of a member that its properties and patterns do not name; without `name`, of
/// any of them that has patterns of those that are `matched`.
std::optional<demand> json_schema_compiler::others_of(const schema_view& x,
                                                      const std::vector<schema_view>& views,
                                                      const std::string* name,
                                                      const matched_views& matched) {
  if (const auto* others = x.find("additionalProperties"))
    return demand{{others, x.below("additionalProperties")}};
  const auto* others = x.find("unevaluatedProperties");
  if (others == nullptr || is_evaluated(x, views, name, matched)) return {};
  return demand{{others, x.below("unevaluatedProperties")}};
}

/// All that they say about the member of that name, with `false` where its name must not be. What
/// is sure leaves out unevaluatedProperties, for choices may be open, and names that may be
/// allowed.
demands json_schema_compiler::member_demands(const std::vector<schema_view>& views,
                                             const std::string& name, certainty known) {
  static const json_value never{false};
  demands all;
  for (const auto& x : views) {
    spend(x.pointer());
    bool is_named = false;
    const auto* properties = x.find("properties");
    if (const auto* schema =
            properties != nullptr ? references_.child(*properties, name) : nullptr) {
      all.push_back({{schema, x.below("properties") + "/" + pointer_part(name)}});
      is_named = true;
    }
    if (const auto* patterns = x.object("patternProperties"))
      for (const auto& [expression, schema] : *patterns)
        if (matches_name(x, expression, name)) {
          all.push_back({{&schema, x.below("patternProperties") + "/" + pointer_part(expression)}});
          is_named = true;
        }
    if (!is_named && (known == certainty::narrow || x.has("additionalProperties")))
      if (const auto others = others_of(x, views, &name, {})) all.push_back(*others);
    if (const auto* names = x.find("propertyNames")) {
      const auto taken = holds(json_value(name), demands{{{names, x.below("propertyNames")}}});
      if (taken == verdict::no || (taken == verdict::unknown && known == certainty::narrow))
        all.push_back({{&never, x.below("propertyNames")}});
    }
  }
  return all;
}

// --- members in their order ----------------------------------------------------------------------

/// Is the name one of those that `other_member` of `x` is about?
bool json_schema_compiler::is_other_member(const schema_view& x, const std::string& name) {
  const auto& said = *x.find(other_member);
  if (const auto* allowed = said.find("named"))
    return holds(json_value(name), demands{{{allowed, x.pointer()}}}) == verdict::no;
  if (const auto* pattern = said.find("pattern"))
    return matches_name(x, *pattern->get_if<std::string>(), name);
  const auto& names = *said.find("names")->get_if<json_value::array>();
  const auto& patterns = *said.find("patterns")->get_if<json_value::array>();
  spend(x.pointer(), 1 + names.size() / 16);
  return std::find(names.begin(), names.end(), json_value(name)) == names.end()
         && std::none_of(patterns.begin(), patterns.end(), [&](const auto& one) {
              return matches_name(x, *one.template get_if<std::string>(), name);
            });
}

/// That the member is there, with a value that is not one of those that `other_member` allows.
json_value json_schema_compiler::member_needed(const schema_view& x, const std::string& name) {
  json_value::object needed{{"required", json_value::array{name}}};
  const auto* allowed = x.find(other_member)->find("value");
  if (allowed == nullptr) return needed;
  json_value::object opposite{{"not", *allowed}};
  needed.emplace_back("properties", json_value::object{{name, std::move(opposite)}});
  return needed;
}

/// One of the named members that are others is there, whatever is beside it.
node_id json_schema_compiler::object_with_other(const std::vector<schema_view>& views, size_t at,
                                                node_id next) {
  std::vector<schema_view> rest;
  for (size_t i = 0; i < views.size(); ++i)
    if (i != at) rest.push_back(views[i]);
  std::vector<node_id> ways;
  for (const auto& m : members_of(rest).named) {
    if (!is_other_member(views[at], m.name) || flat(m.value).impossible.schema != nullptr) continue;
    if (++combinations_ > combinations_max)
      throw json_schema_error(views[at].pointer(), "has more members that may tell it apart from "
                                                   "other alternatives than can be tried");
    const auto one = made(views[at], "needs " + m.name, member_needed(views[at], m.name));
    auto with = rest;
    with.emplace_back(*one.place.schema, one.place.pointer);
    ways.push_back(object(with, next));
  }
  if (ways.empty())
    return nothing({nullptr, views[at].pointer()}, "leaves no member to tell it apart by");
  return grammar_.choice(std::move(ways));
}

node_id json_schema_compiler::object(const std::vector<schema_view>& views, node_id next) {
  for (size_t i = 0; i < views.size(); ++i)
    if (views[i].has(other_member)) return object_with_other(views, i, next);
  const auto all = members_of(views);
  const bool counted = all.min > 0 || all.max != grammar::unbounded;
  const bool open = reading_ == schema_reading::standard || !all.has_properties;
  if (all.named.empty() && !all.says_others && open && !counted) return json_.any_object(next);
  const auto close = grammar_.text("}", next);
  return grammar_.text(
      "{", json_.space(counted ? counted_members(all, views, close) : members(all, views, close)));
}

namespace {

bool takes_others(const std::vector<schema_view>& views, bool unsaid) {
  static const json_value never{false};
  bool said = false, closed = false;
  for (const auto& x : views) {
    if (x.has("patternProperties")) return true;
    const auto* additional = x.find("additionalProperties");
    const auto* unevaluated = x.find("unevaluatedProperties");
    if (additional != nullptr && *additional == never) return false;
    said = said || additional != nullptr || (unevaluated != nullptr && !(*unevaluated == never));
    closed = closed || unevaluated != nullptr;
  }
  return said || (unsaid && !closed);
}

} // namespace

/// From behind the bracket to `close`.
node_id json_schema_compiler::members(const object_members& all,
                                      const std::vector<schema_view>& views, node_id close) {
  const auto spaced_close = json_.space(close);
  auto behind = spaced_close; // there are members before
  auto first = close;         // there are none
  const bool unsaid = reading_ == schema_reading::standard || !all.has_properties;
  if (takes_others(views, unsaid)) {
    behind = grammar_.choice();
    const auto member = other_key(all, views, behind);
    grammar_.branch(behind, {grammar_.text(",", json_.space(member)), spaced_close});
    first = grammar_.maybe(member, close);
  }
  for (size_t i = all.named.size(); i-- > 0;) {
    const auto& m = all.named[i];
    const auto lists = flat(m.value);
    if (lists.impossible.schema != nullptr) {
      if (m.required.empty()) continue;
      return nothing({nullptr, m.required}, "has " + m.name + ", for which "
                                                + lists.impossible.pointer + " allows no value");
    }
    const auto member =
        json_.literal(json_value(m.name), grammar_.text(":", json_.space(value(lists, behind))));
    const auto another = grammar_.text(",", json_.space(member));
    behind = !m.required.empty() ? another : grammar_.maybe(another, behind);
    first = !m.required.empty() ? member : grammar_.maybe(member, first);
  }
  return first;
}

/// Other members, by the number of members before them.
std::vector<node_id> json_schema_compiler::counted_others(const object_members& all,
                                                          const std::vector<schema_view>& views,
                                                          uint32_t limit, bool bounded,
                                                          node_id close) {
  const auto spaced_close = json_.space(close);
  const auto pair = grammar_.rule(), another = grammar_.rule();
  grammar_.begin(pair, other_key(all, views, grammar_.end()));
  grammar_.begin(another, grammar_.text(",", json_.space(grammar_.call(pair, grammar_.end()))));
  std::vector<node_id> behind;
  for (uint32_t n = 0; n <= limit; ++n) {
    const auto left = bounded ? all.max - n : grammar::unbounded;
    const auto rest = left == grammar::unbounded ? left : left > 0 ? left - 1 : 0;
    std::vector<node_id> ways;
    if (n >= all.min) ways.push_back(n == 0 ? close : spaced_close);
    if (left > 0 && n + 1 >= all.min) {
      const auto one = grammar_.call(pair, grammar_.repeat(another, 0, rest, spaced_close));
      ways.push_back(n == 0 ? one : grammar_.text(",", json_.space(one)));
    }
    behind.push_back(grammar_.choice(std::move(ways)));
  }
  return behind;
}

/// The same with a node for each number of members before. Others may have one name and count as
/// one then: only the first of them is sure to be one more.
node_id json_schema_compiler::counted_members(const object_members& all,
                                              const std::vector<schema_view>& views,
                                              node_id close) {
  std::vector<const object_members::member*> there;
  for (const auto& m : all.named)
    if (flat(m.value).impossible.schema == nullptr)
      there.push_back(&m);
    else if (!m.required.empty())
      return nothing({nullptr, m.required}, "has " + m.name + ", which is not allowed");
  const bool unsaid = reading_ == schema_reading::standard || !all.has_properties;
  const bool others = takes_others(views, unsaid) && all.max > 0;
  const auto most = static_cast<uint32_t>(there.size()) + (others ? 1 : 0);
  if (all.min > most) {
    if (others && there.empty() && all.min > 1)
      throw json_schema_error(all.min_at.pointer, "is only supported up to 1 more than there are "
                                                  "named members: two others may have the same "
                                                  "name, and count as one");
    return nothing(all.min_at, "is above the number of members that are allowed");
  }
  if (all.max < all.min) return nothing(all.min_at, "is above maxProperties");
  const bool bounded = all.max < grammar::unbounded && (others || all.max < there.size());
  const auto limit =
      bounded ? std::min(all.max, static_cast<uint32_t>(there.size())) : std::max(all.min, 1u);
  if (size_t{limit + 1} * (there.size() + 1) > counted_members_max)
    throw json_schema_error(all.min_at.pointer.empty() ? views[0].pointer() : all.min_at.pointer,
                            "counts too many members: more than "
                                + std::to_string(counted_members_max) + " combinations");
  // By number of members before, `limit` for all that are more where there is no maximum.
  std::vector<node_id> behind;
  if (others) {
    behind = counted_others(all, views, limit, bounded, close);
  } else {
    const auto spaced_close = json_.space(close), none = grammar_.choice();
    for (uint32_t n = 0; n <= limit; ++n)
      behind.push_back(n < all.min ? none : n == 0 ? close : spaced_close);
  }
  for (size_t i = there.size(); i-- > 0;) {
    const auto& m = *there[i];
    const auto member = grammar_.rule();
    grammar_.begin(member,
                   json_.literal(json_value(m.name),
                                 grammar_.text(":", json_.space(value(m.value, grammar_.end())))));
    auto before = behind;
    for (uint32_t n = 0; n <= limit; ++n) {
      const bool full = bounded && n == limit && all.max == limit;
      std::vector<node_id> ways;
      if (m.required.empty()) ways.push_back(behind[n]);
      if (!full) {
        const auto one = grammar_.call(member, behind[std::min(n + 1, limit)]);
        ways.push_back(n == 0 ? one : grammar_.text(",", json_.space(one)));
      }
      before[n] = ways.size() == 1 ? ways[0] : grammar_.choice(std::move(ways));
    }
    behind = std::move(before);
  }
  return behind[0];
}

} // namespace lamella::model
