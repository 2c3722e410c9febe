// Finds the members and items that other keywords have evaluated, for unevaluatedProperties and
// unevaluatedItems. When an object or an array is compiled, all alternatives are chosen, and the
// list has all schemas that hold: those that apply to the value itself count as evaluating.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

struct applied_place {
  schema_place place;
  /// The schema applies only under a condition (`then`, `else`, dependencies). References out of
  /// it are not followed, because an unconditional path to the same schema would look the same.
  bool is_conditional = false;
};

} // namespace

/// Schemas that `x` applies to the same value, whichever choices are made.
const json_schema_compiler::schema_set& json_schema_compiler::applied_by(const schema_view& x) {
  const auto [known, is_new] = applied_.try_emplace(&x.schema());
  auto& all = known->second;
  if (!is_new) return all;
  std::vector<applied_place> to_do{{{&x.schema(), x.pointer()}, false}};
  while (!to_do.empty()) {
    const auto at = std::move(to_do.back());
    to_do.pop_back();
    if (at.place.schema->get_if<json_value::object>() == nullptr) continue;
    if (!all.insert(at.place.schema).second) continue;
    spend(at.place.pointer);
    const schema_view view{*at.place.schema, at.place.pointer};
    if (!at.is_conditional)
      for (auto& place : references_.targets(view)) to_do.push_back({std::move(place), false});
    for (const auto* keyword : {"allOf", "anyOf", "oneOf"})
      if (const auto* schemas = view.array(keyword)) {
        spend_on_places(view, schemas->size());
        for (size_t i = 0; i < schemas->size(); ++i)
          to_do.push_back(
              {{&(*schemas)[i], view.below(keyword) + "/" + std::to_string(i)}, at.is_conditional});
      }
    if (const auto* schema = view.find("if"))
      to_do.push_back({{schema, view.below("if")}, at.is_conditional});
    const auto conditional = [&](schema_place place) {
      if (!references_.is_referred_to(place)) to_do.push_back({std::move(place), true});
    };
    for (const auto* keyword : {"then", "else"})
      if (const auto* schema = view.find(keyword)) conditional({schema, view.below(keyword)});
    for (const auto* keyword : {"dependentSchemas", "dependencies"})
      if (const auto* members = view.object(keyword))
        for (const auto& [name, schema] : *members) {
          spend(view.pointer());
          conditional({&schema, view.below(keyword) + "/" + pointer_part(name)});
        }
  }
  all.erase(&x.schema());
  return all;
}

/// Does one that `x` applies say something about the member? Without a name: about any whose name
/// has patterns of those that are `matched`.
bool json_schema_compiler::is_evaluated(const schema_view& x, const std::vector<schema_view>& views,
                                        const std::string* name, const matched_views& matched) {
  const auto& applied = applied_by(x);
  return std::any_of(views.begin(), views.end(), [&](const schema_view& one) {
    if (!applied.contains(&one.schema())) return false;
    if (one.has("additionalProperties") || one.has("unevaluatedProperties")) return true;
    if (name == nullptr) return matched.contains(&one);
    const auto* properties = one.find("properties");
    if (properties != nullptr && references_.child(*properties, *name) != nullptr) return true;
    const auto* patterns = one.object("patternProperties");
    return patterns != nullptr
           && std::any_of(patterns->begin(), patterns->end(), [&](const auto& pattern) {
                return matches_name(one, pattern.first, *name);
              });
  });
}

/// How many items those that `x` applies have evaluated; nothing: all.
std::optional<size_t> json_schema_compiler::evaluated_items(const schema_view& x,
                                                            const std::vector<schema_view>& views) {
  const auto& applied = applied_by(x);
  size_t count = 0;
  for (const auto& one : views) {
    if (!applied.contains(&one.schema())) continue;
    const auto* items = one.find("items");
    const auto* list = items != nullptr ? items->get_if<json_value::array>() : nullptr;
    const bool has_others = list != nullptr ? one.has("additionalItems") : items != nullptr;
    if (has_others || one.has("unevaluatedItems")) return {};
    if (list == nullptr && one.has("prefixItems")) list = one.array("prefixItems");
    if (list != nullptr) count = std::max(count, list->size());
  }
  return count;
}

} // namespace lamella::model
