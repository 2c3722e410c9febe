/// Writes JSON text member by member, always the same bytes for the same calls.
#pragma once

#include "base/json.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella {

/// Appends to one string, without white space or line breaks. Doubles are written in the shortest
/// form that reads back the same (2.5, 1e+30); a double that is not finite becomes null. Strings
/// are always valid UTF-8 on the way out: bytes that are not become U+FFFD. The caller keeps
/// objects and arrays balanced; commas and colons are set here.
class json_writer {
public:
  json_writer& begin_object();
  json_writer& end_object();
  json_writer& begin_array();
  json_writer& end_array();
  json_writer& key(std::string_view name);

  json_writer& null();
  json_writer& value(bool value);
  json_writer& value(double value);
  json_writer& value(std::string_view value);
  json_writer& value(const char* value) { return this->value(std::string_view(value)); }
  json_writer& value(const std::string& value) { return this->value(std::string_view(value)); }
  json_writer& value(const json_value& value);
  template <std::integral T>
  requires(!std::same_as<T, bool>) json_writer& value(T value) {
    if constexpr (std::is_signed_v<T>)
      return integer(static_cast<int64_t>(value));
    else
      return integer(static_cast<uint64_t>(value));
  }

  /// Appends a JSON text made elsewhere as one value.
  json_writer& raw(std::string_view json);

  template <class T> json_writer& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  json_writer& null_member(std::string_view name) { return key(name).null(); }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

private:
  void separate();
  json_writer& integer(int64_t value);
  json_writer& integer(uint64_t value);

  std::string text_;
  std::vector<bool> first_{}; ///< per open object or array: nothing written yet
  bool after_key_ = false;
};

/// The whole value as text.
std::string to_json(const json_value& value);

/// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD (one per maximal bad
/// sequence).
std::string valid_utf8(std::string_view text);

} // namespace lamella
