#include "model/jinja/fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace lamella::model::jinja {
namespace {

/// Digits of a number, with what stands before them.
struct number_text {
  std::string sign;
  std::string digits;
};

std::string grouped(std::string digits, char by) {
  if (by == 0) return digits;
  auto end = digits.find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits.size();
  for (; end > 3; end -= 3) digits.insert(end - 3, 1, by);
  return digits;
}

std::string digits_of(uint64_t n, int base, bool upper) {
  std::array<char, 65> out{};
  const auto end = std::to_chars(out.data(), out.data() + out.size(), n, base).ptr;
  std::string digits{out.data(), end};
  return upper ? to_upper(digits) : digits;
}

number_text whole_text(int64_t n, const field_style& style) {
  const char type = style.type;
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const auto size = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  number_text out{n < 0               ? "-"
                  : style.sign == '-' ? ""
                                      : std::string(1, style.sign),
                  grouped(digits_of(size, base, type == 'X'), style.group)};
  if (style.prefix && base != 10) out.sign += std::string{"0"} + type;
  return out;
}

number_text real_digits(double x, const field_style& style) {
  number_text out{std::signbit(x) && !std::isnan(x) ? "-"
                  : style.sign == '-'               ? ""
                                                    : std::string(1, style.sign),
                  ""};
  const double size = std::abs(x);
  const bool upper = style.type == 'F' || style.type == 'E' || style.type == 'G';
  if (!std::isfinite(x)) {
    out.digits = std::isnan(x) ? "nan" : "inf";
  } else if (style.type == 0 && style.precision < 0) {
    out.digits = real_text(size);
  } else {
    const char type = style.type == 0 || style.type == 'n' ? 'g'
                      : style.type == '%'                  ? 'f'
                                                           : style.type;
    const char form[] = {'%', '.', '*', type, 0};
    std::array<char, 700> digits{};
    std::snprintf(digits.data(), digits.size(), form, style.precision < 0 ? 6 : style.precision,
                  style.type == '%' ? size * 100 : size);
    out.digits = digits.data();
    if (style.type == 0 && out.digits.find_first_of(".e") == std::string::npos) out.digits += ".0";
  }
  if (upper) out.digits = to_upper(out.digits);
  out.digits = grouped(out.digits, style.group);
  if (style.type == '%') out.digits += '%';
  return out;
}

/// `body` with the fill that its width asks for; `sign` stays before a fill of align '='.
text padded(heap& h, const std::string& sign, const text& body, const field_style& style,
            char usual) {
  const auto size = static_cast<int64_t>(character_count(sign) + character_count(body.bytes()));
  const auto missing = static_cast<size_t>(std::max<int64_t>(style.width - size, 0));
  const char align = style.align != 0 ? style.align : usual;
  const size_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto fill = [&](size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += style.fill;
    h.charge(out.size());
    return out;
  };
  text out;
  if (align == '=') out.append(sign, true);
  out.append(fill(before), true);
  if (align != '=') out.append(sign, true);
  out.append(body);
  out.append(fill(missing - before), true);
  return out;
}

text padded(heap& h, const number_text& x, const field_style& style) {
  return padded(h, x.sign, text{x.digits, true}, style, '>');
}

text text_field(heap& h, text x, const field_style& style, char usual) {
  if (style.precision >= 0) {
    const auto positions = character_positions(x.bytes());
    x = x.part(0, positions[std::min(static_cast<size_t>(style.precision), positions.size() - 1)]);
  }
  h.charge(x.size());
  return padded(h, "", x, style, usual);
}

bool is_whole_type(char c) {
  return c != 0 && std::string_view{"diuoxXbc"}.find(c) != std::string_view::npos;
}
bool is_real_type(char c) {
  return c != 0 && std::string_view{"eEfFgG%n"}.find(c) != std::string_view::npos;
}

text character_text(heap& h, int64_t code) {
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    h.fail("a format with c needs the number of a character");
  std::string out;
  append_utf8(out, static_cast<char32_t>(code));
  return text{out, true};
}

/// `[[fill]align][sign][#][0][width][,][.precision][type]`.
field_style style_of(heap& h, const std::string& spec) {
  constexpr std::string_view aligns = "<>^=";
  field_style style;
  size_t at = 0;
  const auto here = [&] { return at < spec.size() ? spec[at] : '\0'; };
  const auto is_align = [&](size_t i) {
    return i < spec.size() && aligns.find(spec[i]) != aligns.npos;
  };
  if (const size_t first = spec.empty() ? 0 : character_bytes(spec, 0); is_align(first)) {
    style.fill = spec.substr(0, first);
    style.align = spec[first];
    at = first + 1;
  } else if (is_align(0)) {
    style.align = spec[at++];
  }
  if (here() == '+' || here() == '-' || here() == ' ') style.sign = spec[at++];
  if (here() == '#') style.prefix = spec[at++] != 0;
  if (here() == '0') {
    ++at;
    if (style.align == 0) style.fill = "0", style.align = '=';
  }
  style.width = number_at(h, spec, at, width_max);
  if (here() == ',' || here() == '_') style.group = spec[at++];
  if (here() == '.') {
    if (++at; !is_digit(here())) h.fail("the format '" + spec + "' has no precision behind .");
    style.precision = static_cast<int>(number_at(h, spec, at, precision_max));
  }
  if (at < spec.size()) style.type = spec[at++];
  if (at < spec.size()) h.fail("the format '" + spec + "' is not known");
  return style;
}

} // namespace

int64_t number_at(heap& h, std::string_view bytes, size_t& at, int64_t most) {
  int64_t n = 0;
  for (; at < bytes.size() && is_digit(bytes[at]); ++at) {
    n = n * 10 + (bytes[at] - '0');
    if (n > most) h.fail("a width or precision of a format is more than " + std::to_string(most));
  }
  return n;
}

text percent_field(heap& h, const value& x, field_style style, bool escapes) {
  const char type = style.type;
  if (type == 's' || type == 'r' || type == 'a') {
    const auto shown = type == 's' ? to_text(h, x) : to_repr(h, x);
    return text_field(h, escapes ? escaped(shown) : shown, style, '>');
  }
  if (type == 'c' && std::holds_alternative<const text*>(x)
      && character_count(std::get<const text*>(x)->bytes()) == 1)
    return text_field(h, *std::get<const text*>(x), style, '>');
  if (type == 'c' && as_whole(x)) return text_field(h, character_text(h, *as_whole(x)), style, '>');
  const bool is_decimal = type == 'd' || type == 'i' || type == 'u';
  if (is_whole_type(type) && type != 'b' && type != 'c'
      && (as_whole(x) || (is_decimal && is_number(x)))) {
    const double real = as_real(x);
    if (!as_whole(x) && !(std::abs(real) < 9.2e18)) h.fail("an integer is too large");
    auto made = whole_text(as_whole(x).value_or(static_cast<int64_t>(real)), style);
    if (static_cast<int64_t>(made.digits.size()) < style.precision)
      made.digits.insert(0, static_cast<size_t>(style.precision) - made.digits.size(), '0');
    return padded(h, made, style);
  }
  if (is_real_type(type) && type != '%' && type != 'n' && is_number(x))
    return padded(h, real_digits(as_real(x), style), style);
  h.fail(std::string{"the format %"} + type + " does not fit " + type_name(x));
}

text formatted(heap& h, const value& x, const std::string& spec) {
  if (spec.empty()) return to_text(h, x);
  auto style = style_of(h, spec);
  const char type = style.type;
  const auto refuse = [&] { h.fail("the format '" + spec + "' does not fit " + type_name(x)); };
  if (const auto* s = std::get_if<const text*>(&x)) {
    if ((type != 0 && type != 's') || style.sign != '-' || style.group != 0 || style.prefix)
      refuse();
    if (style.align == '=') {
      if (style.fill != "0") refuse();
      style.align = '<';
    }
    return text_field(h, **s, style, '<');
  }
  if (!is_number(x)) refuse();
  const auto whole = as_whole(x);
  if (whole && type == 'c') return text_field(h, character_text(h, *whole), style, '<');
  if (whole && (type == 0 || type == 'n' || is_whole_type(type)) && type != 'i' && type != 'u') {
    if (style.precision >= 0) refuse();
    return padded(h, whole_text(*whole, style), style);
  }
  if (!is_real_type(type) && (whole || type != 0)) refuse();
  return padded(h, real_digits(as_real(x), style), style);
}

} // namespace lamella::model::jinja
