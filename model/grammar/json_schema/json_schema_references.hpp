/// What references mean within one schema document.
#pragma once

#include "base/json.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/json_schema_resources.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamella::model {

/// Finds what references point at. The document must outlive it. A reference is a URI of a resource
/// of the document, resolved against the `$id`s around it, and a fragment: a JSON pointer (RFC
/// 6901, section 6) or the name of an anchor. Nothing is loaded from elsewhere.
///
/// What `$dynamicRef` and `$recursiveRef` point at depends on the way that leads there. They are
/// read where every way leads to the same schema: the document itself has the name, or one resource
/// alone has it.
class schema_references {
public:
  explicit schema_references(const json_value& root) : root_{root} {}

  /// What `$ref`, `$dynamicRef` and `$recursiveRef` of `x` point at; an error where one of them
  /// points at nothing, or cannot be decided.
  std::vector<schema_place> targets(const schema_view& x);

  /// May a reference lead into the schema at that place, or below it? Logarithmic in the references
  /// of the document, but for the first time.
  bool is_referred_to(const schema_place& place);
  /// Has a schema of the document `unevaluatedProperties` or `unevaluatedItems`?
  bool has_unevaluated() { return !resources().with_unevaluated().empty(); }

  /// The member or item of that name, found fast in large objects.
  const json_value* child(const json_value& of, const std::string& name);

private:
  struct found_target {
    schema_place place;
    const schema_resource* resource = nullptr;
    std::string anchor; ///< empty: a pointer
  };

  const schema_resources& resources();
  const json_value* find(const json_value& from, std::string_view pointer);
  found_target target(const schema_view& x, std::string_view keyword);
  schema_place dynamic_target(const schema_view& x);
  schema_place recursive_target(const schema_view& x);
  void note_targets();

  const json_value& root_;
  std::optional<schema_resources> resources_; ///< made when a reference is met
  /// What all references point at, ascending; nothing: not looked for yet.
  std::optional<std::vector<std::string>> all_targets_;
  /// Members by name, of the large objects that references go through.
  std::unordered_map<const json_value*, std::unordered_map<std::string_view, const json_value*>>
      members_;
};

} // namespace lamella::model
