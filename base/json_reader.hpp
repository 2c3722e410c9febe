/// Typed access to JSON objects, with ranges, and errors that name the field.
#pragma once

#include "base/json.hpp"

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella {

/// A field is missing, of the wrong type, or out of range.
struct json_field_error : std::runtime_error {
  json_field_error(std::string field, const std::string& what)
      : std::runtime_error(what), path(std::move(field)) {}
  std::string path; ///< dotted: `messages[1].content`
};

/// Inclusive bounds. For strings and arrays of values: of the length in bytes or items.
template <class T> struct json_range {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

/// One value as T: bool, int32_t, uint32_t, int64_t, uint64_t, double or std::string. Integers are
/// accepted as numbers; 1.0 is accepted as an integer up to 2^53; numeric strings are not. Throws
/// json_field_error naming `path`, the value seen and the range.
template <class T>
T json_as(const json_value& value, const std::string& path, json_range<T> range = {});
template <> bool json_as(const json_value&, const std::string&, json_range<bool>);
template <> int32_t json_as(const json_value&, const std::string&, json_range<int32_t>);
template <> uint32_t json_as(const json_value&, const std::string&, json_range<uint32_t>);
template <> int64_t json_as(const json_value&, const std::string&, json_range<int64_t>);
template <> uint64_t json_as(const json_value&, const std::string&, json_range<uint64_t>);
template <> double json_as(const json_value&, const std::string&, json_range<double>);

/// A string of `range` bytes.
std::string json_string(const json_value& value, const std::string& path,
                        json_range<size_t> range = {0, std::numeric_limits<size_t>::max()});

/// The items of an array of `range` items; the reference lives as long as `value`.
const json_value::array& json_items(const json_value& value, const std::string& path,
                                    json_range<size_t> range = {
                                        0, std::numeric_limits<size_t>::max()});

/// `path[index]`.
std::string json_index(const std::string& path, size_t index);

/// Reads the members of one object and records which were read. null counts as absent. The value
/// must outlive the reader.
class json_object_reader {
public:
  /// Throws json_field_error when `value` is not an object. `path` is that of the object itself,
  /// empty at the top.
  explicit json_object_reader(const json_value& value, std::string path = {});

  /// A reader of an object within that of another reader, which goes on to know of it.
  json_object_reader(const json_value& value, std::string path, const json_object_reader& outer);

  /// The member, or null where it is absent or null.
  const json_value* find(std::string_view key);

  /// The member, or json_field_error "is required".
  const json_value& require(std::string_view key);

  template <class T> T required(std::string_view key, json_range<T> range = {}) {
    return json_as<T>(require(key), path(key), range);
  }

  template <class T> std::optional<T> optional(std::string_view key, json_range<T> range = {}) {
    const json_value* value = find(key);
    if (!value) return std::nullopt;
    return json_as<T>(*value, path(key), range);
  }

  std::optional<std::string> optional_string(std::string_view key,
                                             json_range<size_t> range = {
                                                 0, std::numeric_limits<size_t>::max()});
  std::string required_string(std::string_view key,
                              json_range<size_t> range = {0, std::numeric_limits<size_t>::max()});

  /// The dotted path of a member.
  std::string path(std::string_view key) const;

  /// Unread keys, in the order of the text (also those whose value is null).
  std::vector<std::string_view> unread() const;

  /// The paths of unread members in inner objects that had readers of their own. Null members are
  /// excluded.
  std::vector<std::string> unread_within() const;

private:
  struct object {
    const json_value::object* members;
    std::string path;
    std::vector<bool> read;
  };

  json_object_reader(const json_value& value, std::string path,
                     std::shared_ptr<std::deque<object>> all);

  std::shared_ptr<std::deque<object>> all_; ///< of the outermost reader's text
  object* self_;
};

} // namespace lamella
