/// Walking through the bytes of a GGUF header.
#pragma once

#include "base/file_error.hpp"
#include "base/mapped_file.hpp"
#include "model/files/gguf_type.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::model {

/// Names a field in errors. The text is put together only when there is an error: files have
/// hundreds of thousands of fields.
struct field_label {
  std::string_view name;
  const char* part = "";
  std::optional<uint64_t> index = {};

  field_label(const std::string& whole) : name(whole) {}
  field_label(const char* whole) : name(whole) {}
  field_label(std::string_view whole, const char* of, std::optional<uint64_t> at = {})
      : name(whole), part(of), index(at) {}

  std::string text() const {
    return std::string(name) + (index ? "[" + std::to_string(*index) + "]" : "") + part;
  }
};

/// Reads one field after the other and never beyond the end of the file.
class gguf_cursor {
public:
  explicit gguf_cursor(const mapped_file& file, uint64_t at = 0) : file_(file), at_(at) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.bytes().size() - at_; }

  [[noreturn]] void fail(uint64_t offset, const field_label& field, const std::string& why) const {
    throw file_error(file_.path(), offset, field.text(), why);
  }

  void need(uint64_t bytes, const field_label& field) const {
    if (bytes > left())
      fail(at_, field,
           "needs " + std::to_string(bytes) + " bytes, the file has " + std::to_string(left())
               + " left (is it cut off?)");
  }

  template <class T> T number(const field_label& field) {
    need(sizeof(T), field);
    T value;
    std::memcpy(&value, file_.bytes().data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  /// A count or length, at most `most`.
  uint64_t count(const field_label& field, uint64_t most) {
    const uint64_t offset = at_;
    const auto value = number<uint64_t>(field);
    if (value > most)
      fail(offset, field,
           "is " + std::to_string(value) + ", at most " + std::to_string(most) + " is read");
    return value;
  }

  /// A text of at most `bytes_max`; the view is into the file.
  std::string_view text(const field_label& field, uint64_t bytes_max) {
    const uint64_t bytes = count({field.name, " (length)", field.index}, bytes_max);
    need(bytes, field);
    const std::string_view value(reinterpret_cast<const char*>(file_.bytes().data()) + at_, bytes);
    at_ += bytes;
    return value;
  }

  gguf_type type(const field_label& field) {
    const uint64_t offset = at_;
    const auto value = number<uint32_t>(field);
    if (value > static_cast<uint32_t>(gguf_type::f64))
      fail(offset, field, "is " + std::to_string(value) + ", known value types are 0 to 12");
    return static_cast<gguf_type>(value);
  }

  void skip(uint64_t bytes, const field_label& field) {
    need(bytes, field);
    at_ += bytes;
  }

private:
  const mapped_file& file_;
  uint64_t at_;
};

} // namespace lamella::model
