/// The parts of one schema document that have URIs and names of their own.
#pragma once

#include "base/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lamella::model {

/// Of the paths to all schemas of a document: a long name above many places is in the path to each.
constexpr size_t paths_bytes_max = 32 << 20;

/// A schema, and where it is within the document.
struct schema_place {
  const json_value* schema = nullptr;
  std::string pointer;
};

/// A schema with an `$id`, or the document, and what is named within it.
struct schema_resource {
  schema_place root;
  std::string uri; ///< absolute where the document has an `$id`; no fragment
  /// `$anchor`, `$dynamicAnchor`, and an `$id` or `id` that is a mere fragment. Without a schema:
  /// the name is there twice.
  std::unordered_map<std::string, schema_place> anchors;
  std::unordered_map<std::string, schema_place> dynamic_anchors;
  bool is_recursive = false; ///< `$recursiveAnchor`
};

/// All resources of a document. Only where a keyword has schemas are schemas: an `$id` in a
/// constant, or in a keyword that no draft has, is none. Linear in the document. Throws
/// json_schema_error where its places have longer paths together than `paths_bytes_max`.
class schema_resources {
public:
  explicit schema_resources(const json_value& root);

  /// The innermost around that place.
  const schema_resource& around(std::string_view pointer) const;
  /// The one of that URI; nothing where there is none, or two.
  const schema_resource* named(const std::string& uri) const;
  const std::vector<schema_resource>& all() const { return resources_; }

  /// Schemas with `unevaluatedProperties` or `unevaluatedItems`.
  const std::vector<schema_place>& with_unevaluated() const { return with_unevaluated_; }
  /// Schemas that refer to others.
  const std::vector<schema_place>& with_references() const { return with_references_; }

private:
  void add(const schema_place& place);

  std::vector<schema_resource> resources_;
  std::unordered_map<std::string, size_t> by_pointer_;
  std::unordered_map<std::string, std::optional<size_t>> by_uri_;
  std::vector<schema_place> with_unevaluated_, with_references_;
};

/// A keyword that no draft has and that therefore means nothing.
struct unknown_keyword {
  std::string name;
  size_t count;        ///< places that have it
  std::string pointer; ///< to the first of them
};

/// All such keywords of a schema, or the first 32, in the order of their places. Places behind
/// `paths_bytes_max` of paths are not looked at.
std::vector<unknown_keyword> unknown_keywords(const json_value& schema);

} // namespace lamella::model
