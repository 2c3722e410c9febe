/// Reading the keywords of one JSON Schema.
#pragma once

#include "base/json.hpp"
#include "model/grammar/json_schema/json_schema_error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

enum class json_type : uint8_t { object, array, string, number, integer, boolean, null };

/// One schema within another: an object, and where it is.
class schema_view {
public:
  /// Throws json_schema_error unless it is an object, none of whose keywords is one that says which
  /// values are taken and is not supported.
  schema_view(const json_value& schema, std::string pointer);

  const std::string& pointer() const { return pointer_; }
  std::string below(std::string_view keyword) const;
  const json_value* find(std::string_view keyword) const { return schema_.find(keyword); }
  bool has(std::string_view keyword) const { return find(keyword) != nullptr; }
  const json_value& schema() const { return schema_; }

  [[noreturn]] void fail(std::string_view keyword, const std::string& problem) const;

  /// A number of items, characters or members.
  std::optional<uint32_t> count(std::string_view keyword) const;
  const json_value::array* array(std::string_view keyword) const;
  const json_value::object* object(std::string_view keyword) const;
  std::optional<std::string> text(std::string_view keyword) const;

  /// What `type` names.
  std::vector<json_type> types() const;
  /// The types that its other keywords are about.
  std::vector<json_type> types_about() const;

private:
  const json_value& schema_;
  std::string pointer_;
};

/// `name` as part of a JSON pointer.
std::string pointer_part(std::string_view name);

/// Does the keyword say nothing about which values are taken? Unknown ones do not, by the standard.
bool is_annotation(std::string_view keyword);
/// Does it say something about a value itself, and not about which other schemas hold?
bool is_own_keyword(std::string_view keyword);
/// What opposites are made of: not the pattern, none of the values.
/// A member of another name than these, and with none of these patterns. Beside `type`: of its
/// numbers those that are no integers. No document spells them: they begin with a byte that is
/// nowhere in UTF-8, and what a document writes in other letters is an annotation.
constexpr std::string_view not_pattern = "\377not pattern", not_among = "\377none of",
                           other_member = "\377member other than", no_integers = "\377no integers";
/// Is it `true`, or an object of annotations: any value is taken?
bool takes_anything(const json_value& schema);

json_type type_of(const json_value& value);
/// The nearest double; nothing for what is no number.
std::optional<double> number_of(const json_value& value);
/// Whole numbers beyond 2^53 are not all doubles: some readers tell them apart, others do not.
enum class number_reading : uint8_t { exact, as_doubles };
/// Equal for values that schemas take for the same: numbers are as large, members have no order.
std::string value_key(const json_value& value, number_reading how);
/// Is a value of that type one of these? Integers are numbers.
bool is_among(json_type type, const std::vector<json_type>& types);

} // namespace lamella::model
