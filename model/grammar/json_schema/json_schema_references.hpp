/// What `$ref` means within one schema document.
#pragma once

#include "base/json.hpp"
#include "model/grammar/json_schema/json_schema_keywords.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

namespace lamella::model {

/// A schema, and where it is within the document.
struct schema_place {
  const json_value* schema = nullptr;
  std::string pointer;
};

/// Finds what references point at. The document must outlive it. A reference is a fragment with a
/// JSON pointer (RFC 6901, section 6), within the resource that its schema is part of: the
/// document, or the innermost schema around it that has an `$id` of its own.
class schema_references {
public:
  explicit schema_references(const json_value& root) : root_{root} {}

  /// What the `$ref` of `x` points at; an error where that is nothing.
  schema_place target(const schema_view& x);

  /// The member or item of that name, found fast in large objects.
  const json_value* child(const json_value& of, const std::string& name);

private:
  const json_value* find(const json_value& from, std::string_view pointer);
  schema_place resource_around(const std::string& pointer);

  const json_value& root_;
  /// Members by name, of the large objects that references go through.
  std::unordered_map<const json_value*, std::unordered_map<std::string_view, const json_value*>>
      members_;
};

} // namespace lamella::model
