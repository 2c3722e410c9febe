/// Values as text: str(), repr() and JSON as Python writes them.
#include "model/jinja/value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace lamella::model::jinja {
namespace {

/// repr() of a string: single quotes unless there are only single quotes inside; what cannot be
/// shown is escaped.
text repr_of(const text& x) {
  const auto& bytes = x.bytes();
  const bool has_single = bytes.find('\'') != std::string::npos;
  const char quote = has_single && bytes.find('"') == std::string::npos ? '"' : '\'';
  text out;
  out.append(std::string(1, quote), true);
  out.append(x.mapped([&](std::string_view part) {
    std::string shown;
    for (size_t at = 0; at < part.size(); at += character_bytes(part, at)) {
      const char32_t c = character_at(part, at);
      char code[16];
      if (c == static_cast<char32_t>(quote) || c == '\\') {
        shown += '\\';
        shown += static_cast<char>(c);
      } else if (c == '\n' || c == '\r' || c == '\t') {
        shown += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
      } else if (!is_printable(c)) {
        const char* form = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
        std::snprintf(code, sizeof code, form, static_cast<unsigned>(c));
        shown += code;
      } else {
        shown += part.substr(at, character_bytes(part, at));
      }
    }
    return shown;
  }));
  out.append(std::string(1, quote), true);
  return out;
}

std::string json_escaped(std::string_view part, bool ensure_ascii) {
  std::string out;
  char code[16];
  const auto unit = [&](unsigned u) {
    std::snprintf(code, sizeof code, "\\u%04x", u);
    out += code;
  };
  for (size_t at = 0; at < part.size(); at += character_bytes(part, at)) {
    const char32_t c = character_at(part, at);
    constexpr std::string_view plain = "\"\\\n\r\t\f\b";
    constexpr std::string_view means = "\"\\nrtfb";
    const auto i = c < 0x80 ? plain.find(static_cast<char>(c)) : std::string_view::npos;
    if (i != std::string_view::npos) {
      out += '\\';
      out += means[i];
    } else if (c < 0x20) {
      unit(c);
    } else if (c >= 0x7f && ensure_ascii) {
      if (c >= 0x10000) unit(0xd800 + ((c - 0x10000) >> 10));
      unit(c >= 0x10000 ? 0xdc00 + ((c - 0x10000) & 0x3ff) : c);
    } else {
      out += part.substr(at, character_bytes(part, at));
    }
  }
  return out;
}

std::string json_number(const value& x) {
  if (const auto* b = std::get_if<bool>(&x)) return *b ? "true" : "false";
  if (const auto* d = std::get_if<double>(&x)) {
    if (std::isnan(*d)) return "NaN";
    if (std::isinf(*d)) return *d > 0 ? "Infinity" : "-Infinity";
    return real_text(*d);
  }
  if (const auto* big = as_big(x)) return big->digits;
  return std::to_string(as_whole(x).value_or(0));
}

void json_line(text& out, const json_style& style, int depth) {
  if (style.indent < 0) return;
  out.append("\n"
                 + std::string(static_cast<size_t>(style.indent) * static_cast<size_t>(depth), ' '),
             true);
}

} // namespace

std::string real_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  // The shortest digits that read back, with Python's choice between plain and exponent form.
  char digits[40];
  const auto scientific =
      std::to_chars(digits, digits + sizeof digits, x, std::chars_format::scientific);
  std::string text{digits, scientific.ptr};
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent >= -4 && exponent < 16) {
    char plain[400];
    const auto fixed = std::to_chars(plain, plain + sizeof plain, x, std::chars_format::fixed);
    std::string out{plain, fixed.ptr};
    return out.find('.') == std::string::npos ? out + ".0" : out;
  }
  return text;
}

text to_text(heap& h, const value& x) {
  if (const auto* s = std::get_if<const text*>(&x)) return **s;
  if (std::holds_alternative<undefined>(x)) return {};
  return to_repr(h, x);
}

text to_repr(heap& h, const value& x, int depth) {
  h.step();
  if (depth > value_depth_max) h.fail_limit("values are nested too deeply");
  if (const auto* s = std::get_if<const text*>(&x)) {
    h.charge((*s)->size());
    if (!(*s)->is_markup()) return repr_of(**s);
    text out{"Markup(", true};
    out.append(repr_of(**s));
    out.append(")", true);
    return out;
  }
  if (std::holds_alternative<undefined>(x)) return text{"Undefined", true};
  if (std::holds_alternative<none>(x)) return text{"None", true};
  if (const auto* b = std::get_if<bool>(&x)) return text{*b ? "True" : "False", true};
  if (const auto* d = std::get_if<double>(&x)) return text{real_text(*d), true};
  if (const auto* n = std::get_if<int64_t>(&x)) return text{std::to_string(*n), true};
  if (const auto* big = as_big(x)) return text{big->digits, true};
  text out;
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && !(*l)->is_lazy()) {
    const auto& list = **l;
    const auto kind = list.kind;
    const bool is_view = !list.has_places();
    if (is_view)
      out.append(kind == list_kind::keys     ? "dict_keys("
                 : kind == list_kind::values ? "dict_values("
                                             : "dict_items(",
                 true);
    out.append(list.is_tuple() ? "(" : "[", true);
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out.append(", ", true);
      out.append(to_repr(h, list.items[i], depth + 1));
    }
    if (list.is_tuple() && list.items.size() == 1) out.append(",", true);
    out.append(list.is_tuple() ? ")" : "]", true);
    if (is_view) out.append(")", true);
  } else if (const auto* d = std::get_if<const dict_object*>(&x)) {
    out.append("{", true);
    const char* separator = "";
    for (const auto& [key, item] : (*d)->members) {
      out.append(separator, true);
      out.append(to_repr(h, key, depth + 1));
      out.append(": ", true);
      out.append(to_repr(h, item, depth + 1));
      separator = ", ";
    }
    out.append("}", true);
  } else {
    out.append(std::string{"<"} + type_name(x) + ">", true);
  }
  h.charge(out.size());
  return out;
}

void write_json(heap& h, text& out, const value& x, const json_style& style, int depth) {
  h.charge(16);
  if (depth > value_depth_max) h.fail_limit("values are nested too deeply");
  const auto write_text = [&](const text& s) {
    h.charge(s.size());
    out.append("\"", true);
    out.append(
        s.mapped([&](std::string_view part) { return json_escaped(part, style.ensure_ascii); }));
    out.append("\"", true);
  };
  const std::string separator = style.item_separator.value_or(style.indent >= 0 ? "," : ", ");
  if (const auto* s = std::get_if<const text*>(&x)) {
    write_text(**s);
  } else if (std::holds_alternative<none>(x)) {
    out.append("null", true);
  } else if (is_number(x)) {
    out.append(json_number(x), true);
  } else if (const auto* l = std::get_if<const list_object*>(&x);
             l != nullptr && (*l)->has_places()) {
    out.append("[", true);
    for (size_t i = 0; i < (*l)->items.size(); ++i) {
      if (i > 0) out.append(separator, true);
      json_line(out, style, depth + 1);
      write_json(h, out, (*l)->items[i], style, depth + 1);
    }
    if (!(*l)->items.empty()) json_line(out, style, depth);
    out.append("]", true);
  } else if (const auto* d = std::get_if<const dict_object*>(&x)) {
    auto members = (*d)->members;
    if (style.sort_keys)
      std::ranges::stable_sort(
          members, [&](const auto& a, const auto& b) { return compare(h, a.first, b.first) < 0; });
    out.append("{", true);
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out.append(separator, true);
      json_line(out, style, depth + 1);
      const auto& key = members[i].first;
      if (const auto* name = std::get_if<const text*>(&key))
        write_text(**name);
      else if (std::holds_alternative<const list_object*>(key))
        h.fail("a tuple cannot be a key in JSON");
      else
        write_text(text{std::holds_alternative<none>(key) ? "null" : json_number(key), true});
      out.append(style.key_separator, true);
      write_json(h, out, members[i].second, style, depth + 1);
    }
    if (!members.empty()) json_line(out, style, depth);
    out.append("}", true);
  } else {
    h.fail(std::string{type_name(x)} + " cannot be written as JSON");
  }
}

} // namespace lamella::model::jinja
