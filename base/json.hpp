/// JSON from outside: a strict parser into a plain value.
///
/// Clients, files and peers send JSON that a lenient parser would silently change: the last of two
/// equal keys wins, 1e400 becomes infinity, 2^70 becomes a rounded double. Here the first two are
/// errors that name the place, and 2^70 keeps its digits.
#pragma once

#include "base/big_integer.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lamella {

/// Bounds on a JSON text, checked while parsing; beyond one of them parse_json() throws.
struct json_limits {
  size_t text_bytes = size_t{64} << 20;
  size_t depth = 100; ///< nested arrays and objects
  size_t string_bytes = size_t{16} << 20;
  size_t object_members = 1024;    ///< per object
  size_t array_items = 262'144;    ///< per array
  size_t values = size_t{1} << 20; ///< in the whole text; each costs some 40 bytes of memory
};

/// The text is not JSON, breaks a limit, or has a duplicate key.
struct json_syntax_error : std::runtime_error {
  json_syntax_error(const std::string& what, size_t at) : std::runtime_error(what), offset(at) {}
  size_t offset; ///< bytes from the start of the text
};

/// One JSON value. Integers are exact; other numbers are finite doubles.
class json_value {
public:
  using array = std::vector<json_value>;
  using member = std::pair<std::string, json_value>;
  using object = std::vector<member>; ///< in the order of the text, keys unique

  json_value() = default;
  json_value(std::nullptr_t) {}
  json_value(bool value) : data_(value) {}
  json_value(int value) : data_(int64_t{value}) {}
  json_value(unsigned value) : data_(int64_t{value}) {}
  json_value(int64_t value) : data_(value) {}
  json_value(uint64_t value); ///< held as int64_t where it fits
  json_value(double value) : data_(value) {}
  json_value(big_integer value) : data_(std::move(value)) {}
  json_value(const char* value) : data_(std::string(value)) {}
  json_value(std::string value) : data_(std::move(value)) {}
  json_value(std::string_view value) : data_(std::string(value)) {}
  json_value(array value) : data_(std::move(value)) {}
  json_value(object value) : data_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }

  /// The value as T, or null when it is something else. T is one of bool, int64_t, uint64_t (only
  /// above the int64_t range), big_integer (beyond both), double, std::string, array, object.
  template <class T> const T* get_if() const { return std::get_if<T>(&data_); }

  /// The member of that name; null when there is none or this is no object. Linear in the members.
  const json_value* find(std::string_view key) const;

  /// What it is, for messages: "null", "a boolean", "a number", "a string", "an array", "an
  /// object".
  std::string_view kind() const;

  bool operator==(const json_value&) const = default;

private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, big_integer, std::string, array,
               object>
      data_;
};

/// Parses one JSON text. Linear (n log n in the members of an object). Throws json_syntax_error for
/// anything RFC 8259 does not allow, for invalid UTF-8, lone surrogates, duplicate keys, numbers
/// beyond a double's range, and broken limits.
json_value parse_json(std::string_view text, const json_limits& limits = {});

} // namespace lamella
