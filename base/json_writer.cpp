#include "base/json_writer.hpp"

#include <charconv>
#include <cmath>

namespace lamella {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD"; // U+FFFD

/// The bytes of the code point at the start of `text`: its length when valid, else the negated
/// length of the bad sequence (1 to 3 bytes that one U+FFFD stands for).
int code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  // Second bytes have narrower bounds after some first bytes: no overlong forms, no surrogates,
  // nothing above U+10FFFF.
  unsigned low = 0x80, high = 0xBF;
  int length = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return -1;
  }
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= text.size() || byte(i) < low || byte(i) > high) return -i;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x80) {
      ++i;
      switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (u < 0x20 || u == 0x7F) {
          out += "\\u00";
          out += hex[u >> 4];
          out += hex[u & 15];
        } else {
          out += c;
        }
      }
      continue;
    }
    const int length = code_point(text.substr(i));
    if (length > 0)
      out.append(text, i, static_cast<size_t>(length));
    else
      out += replacement;
    i += static_cast<size_t>(std::abs(length));
  }
}

} // namespace

void json_writer::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (first_.empty()) return;
  if (!first_.back()) text_ += ',';
  first_.back() = false;
}

json_writer& json_writer::begin_object() {
  separate();
  text_ += '{';
  first_.push_back(true);
  return *this;
}

json_writer& json_writer::end_object() {
  text_ += '}';
  first_.pop_back();
  return *this;
}

json_writer& json_writer::begin_array() {
  separate();
  text_ += '[';
  first_.push_back(true);
  return *this;
}

json_writer& json_writer::end_array() {
  text_ += ']';
  first_.pop_back();
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  value(name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

json_writer& json_writer::null() { return raw("null"); }

json_writer& json_writer::value(bool value) { return raw(value ? "true" : "false"); }

json_writer& json_writer::value(double value) {
  if (!std::isfinite(value)) return null();
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  raw(text);
  // A number that was a double stays one for readers that look at the form.
  if (text.find_first_of(".e") == std::string_view::npos) text_ += ".0";
  return *this;
}

json_writer& json_writer::integer(int64_t value) { return raw(std::to_string(value)); }
json_writer& json_writer::integer(uint64_t value) { return raw(std::to_string(value)); }

json_writer& json_writer::value(std::string_view value) {
  separate();
  text_ += '"';
  append_escaped(text_, value);
  text_ += '"';
  return *this;
}

json_writer& json_writer::value(const json_value& value) {
  if (const auto* flag = value.get_if<bool>()) return this->value(*flag);
  if (const auto* i = value.get_if<int64_t>()) return integer(*i);
  if (const auto* u = value.get_if<uint64_t>()) return integer(*u);
  if (const auto* d = value.get_if<double>()) return this->value(*d);
  if (const auto* big = value.get_if<big_integer>()) return raw(big->digits);
  if (const auto* text = value.get_if<std::string>()) return this->value(*text);
  if (const auto* items = value.get_if<json_value::array>()) {
    begin_array();
    for (const json_value& item : *items) this->value(item);
    return end_array();
  }
  if (const auto* members = value.get_if<json_value::object>()) {
    begin_object();
    for (const auto& [name, item] : *members) key(name).value(item);
    return end_object();
  }
  return null();
}

json_writer& json_writer::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

std::string to_json(const json_value& value) { return json_writer().value(value).take(); }

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const int length = code_point(text.substr(i));
    if (length > 0)
      out.append(text, i, static_cast<size_t>(length));
    else
      out += replacement;
    i += static_cast<size_t>(std::abs(length));
  }
  return out;
}

} // namespace lamella
