#include "model/grammar/json_schema/json_schema_resources.hpp"

#include "model/grammar/json_schema/json_schema_error.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/uri_reference.hpp"

#include <algorithm>
#include <array>

namespace lamella::model {

namespace {

/// Keywords whose value is a schema or a list of schemas, and those whose members are.
constexpr std::array<std::string_view, 16> of_schemas{"additionalItems",
                                                      "additionalProperties",
                                                      "allOf",
                                                      "anyOf",
                                                      "contains",
                                                      "else",
                                                      "if",
                                                      "items",
                                                      "not",
                                                      "oneOf",
                                                      "prefixItems",
                                                      "propertyNames",
                                                      "unevaluatedProperties",
                                                      "unevaluatedItems",
                                                      "then",
                                                      "contentSchema"};
constexpr std::array<std::string_view, 6> of_members{
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"};

constexpr size_t shown_bytes_max = 512;

bool is_in(std::string_view keyword, const auto& list) {
  return std::find(list.begin(), list.end(), keyword) != list.end();
}

const std::string* text_of(const json_value& schema, std::string_view keyword) {
  const auto* value = schema.find(keyword);
  return value != nullptr ? value->get_if<std::string>() : nullptr;
}

/// A walk through the schemas of a document.
struct schemas_to_do {
  std::vector<schema_place> list;
  size_t paths_bytes = 0; ///< of all places so far
  bool too_long() const { return paths_bytes > paths_bytes_max; }
};

/// Adds nothing any more once the paths are too long.
void add_schemas_below(const schema_place& place, schemas_to_do& out) {
  const auto add = [&](const json_value& schema, const std::string& above,
                       const std::string& name) {
    if (schema.get_if<json_value::object>() == nullptr || out.too_long()) return;
    auto pointer = name.empty() ? above : above + "/" + name;
    out.paths_bytes += pointer.size();
    out.list.push_back({&schema, std::move(pointer)});
  };
  for (const auto& [keyword, value] : *place.schema->get_if<json_value::object>()) {
    const auto* members = value.get_if<json_value::object>();
    const auto* list = value.get_if<json_value::array>();
    const bool has_schemas = is_in(keyword, of_schemas), has_members = is_in(keyword, of_members);
    if (!has_schemas && !has_members) continue;
    const auto below = place.pointer + "/" + pointer_part(keyword);
    if (has_schemas) {
      add(value, below, "");
      for (size_t i = 0; list != nullptr && i < list->size(); ++i)
        add((*list)[i], below, std::to_string(i));
    } else if (members != nullptr) {
      for (const auto& [name, schema] : *members) add(schema, below, pointer_part(name));
    }
  }
}

} // namespace

std::vector<unknown_keyword> unknown_keywords(const json_value& schema) {
  constexpr size_t named_max = 32;
  static constexpr std::array<std::string_view, 22> annotations{"$schema",
                                                                "$id",
                                                                "id",
                                                                "$anchor",
                                                                "$dynamicAnchor",
                                                                "$recursiveAnchor",
                                                                "$comment",
                                                                "$vocabulary",
                                                                "$defs",
                                                                "title",
                                                                "definitions",
                                                                "description",
                                                                "default",
                                                                "deprecated",
                                                                "readOnly",
                                                                "writeOnly",
                                                                "examples",
                                                                "contentEncoding",
                                                                "contentMediaType",
                                                                "contentSchema",
                                                                "minContains",
                                                                "maxContains"};
  std::vector<unknown_keyword> found;
  if (schema.get_if<json_value::object>() == nullptr) return found;
  schemas_to_do to_do{{{&schema, ""}}};
  while (!to_do.list.empty()) {
    const auto place = std::move(to_do.list.back());
    to_do.list.pop_back();
    for (const auto& [keyword, value] : *place.schema->get_if<json_value::object>()) {
      if (!is_annotation(keyword) || is_in(keyword, annotations)) continue;
      const auto known = std::find_if(found.begin(), found.end(),
                                      [&](const auto& x) { return x.name == keyword; });
      if (known != found.end())
        ++known->count;
      else if (found.size() < named_max)
        found.push_back({keyword, 1, place.pointer + "/" + pointer_part(keyword)});
    }
    const auto before = static_cast<std::ptrdiff_t>(to_do.list.size());
    add_schemas_below(place, to_do);
    std::reverse(to_do.list.begin() + before, to_do.list.end());
  }
  return found;
}

schema_resources::schema_resources(const json_value& root) {
  resources_.push_back({{&root, ""}, "", {}, {}, false});
  by_pointer_[""] = 0;
  if (root.get_if<json_value::object>() == nullptr) return;
  // From the outside to the inside: a resource is there before what is in it.
  schemas_to_do to_do{{{&root, ""}}};
  while (!to_do.list.empty()) {
    const auto place = std::move(to_do.list.back());
    to_do.list.pop_back();
    add(place);
    add_schemas_below(place, to_do);
    if (to_do.too_long())
      throw json_schema_error(place.pointer.substr(0, shown_bytes_max),
                              "has so many places behind names so long that the paths to all take "
                              "more than "
                                  + std::to_string(paths_bytes_max) + " bytes; use shorter names");
  }
}

void schema_resources::add(const schema_place& place) {
  const auto* id = text_of(*place.schema, "$id");
  const bool is_root = place.pointer.empty();
  if (is_root || (id != nullptr && !id->starts_with('#'))) {
    const auto uri =
        resolved_uri(is_root ? "" : around(place.pointer).uri, id != nullptr ? *id : "");
    if (!is_root) {
      by_pointer_[place.pointer] = resources_.size();
      resources_.push_back({place, "", {}, {}, false});
    }
    auto& made = is_root ? resources_.front() : resources_.back();
    made.uri = uri;
    const auto* recursive = place.schema->find("$recursiveAnchor");
    made.is_recursive = recursive != nullptr && *recursive == json_value(true);
    const auto index = static_cast<size_t>(&made - resources_.data());
    const auto [known, is_new] = by_uri_.try_emplace(uri, index);
    if (!is_new) known->second.reset();
  }
  auto& resource = resources_[static_cast<size_t>(&around(place.pointer) - resources_.data())];
  const auto name = [&](auto& names, std::string_view text) {
    const auto [known, is_new] = names.try_emplace(std::string(text), place);
    if (!is_new) known->second.schema = nullptr;
  };
  for (const auto* keyword : {"$id", "id"})
    if (const auto* text = text_of(*place.schema, keyword); text != nullptr && text->size() > 1)
      if (text->starts_with('#')) name(resource.anchors, text->substr(1));
  for (const auto* keyword : {"$anchor", "$dynamicAnchor"})
    if (const auto* text = text_of(*place.schema, keyword)) name(resource.anchors, *text);
  if (const auto* text = text_of(*place.schema, "$dynamicAnchor"))
    name(resource.dynamic_anchors, *text);
  for (const auto* keyword : {"unevaluatedProperties", "unevaluatedItems"})
    if (place.schema->find(keyword) != nullptr) {
      with_unevaluated_.push_back(place);
      break;
    }
  for (const auto* keyword : {"$ref", "$dynamicRef", "$recursiveRef"})
    if (place.schema->find(keyword) != nullptr) {
      with_references_.push_back(place);
      break;
    }
}

const schema_resource& schema_resources::around(std::string_view pointer) const {
  if (resources_.size() == 1) return resources_[0];
  for (;;) {
    if (const auto known = by_pointer_.find(std::string(pointer)); known != by_pointer_.end())
      return resources_[known->second];
    const auto slash = pointer.find_last_of('/');
    pointer = pointer.substr(0, slash == pointer.npos ? 0 : slash);
  }
}

const schema_resource* schema_resources::named(const std::string& uri) const {
  const auto known = by_uri_.find(uri);
  return known == by_uri_.end() || !known->second ? nullptr : &resources_[*known->second];
}

} // namespace lamella::model
