/// Formats as Python has them: `'%d' % x` and `'{:d}'.format(x)`.
#include "model/jinja_builtins.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace lamella::model::jinja {
namespace {

constexpr int64_t width_max = 100'000;
constexpr int precision_max = 300;

/// How one value is to be written.
struct field_style {
  std::string fill = " ";
  char align = 0; ///< < > ^ or = (between sign and digits); 0: as the type has it
  char sign = '-';
  bool prefix = false; ///< 0x, 0o and 0b
  char group = 0;      ///< between groups of three digits
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

/// Digits of a number, with what stands before them.
struct number_text {
  std::string sign;
  std::string digits;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads digits at `at`; fails above `most`.
int64_t number_at(heap& h, std::string_view bytes, size_t& at, int64_t most) {
  int64_t n = 0;
  for (; at < bytes.size() && is_digit(bytes[at]); ++at) {
    n = n * 10 + (bytes[at] - '0');
    if (n > most) h.fail("a width or precision of a format is more than " + std::to_string(most));
  }
  return n;
}

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

/// One value of `%`; into markup, texts go escaped.
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

/// format(x, spec) of Python.
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

/// Reads `{...}` fields of a format.
class brace_format {
public:
  brace_format(heap& h, const text& format, arguments& args)
      : h_{h}, format_{format}, args_{args} {}

  text run() {
    auto out = part(0, format_.size(), 2);
    args_.positional.clear();
    args_.named.clear();
    return out;
  }

private:
  /// Bytes [from, to) with their fields filled in; specs may have fields of their own.
  text part(size_t from, size_t to, int levels) {
    if (levels == 0) h_.fail("a format has fields within fields within fields");
    const auto& bytes = format_.bytes();
    text out;
    for (size_t at = from; at < to;) {
      h_.step();
      const auto next = std::min(bytes.find_first_of("{}", at), to);
      out.append_range(format_, at, next);
      if (next == to) break;
      if (next + 1 < to && bytes[next + 1] == bytes[next]) {
        out.append_range(format_, next, next + 1);
        at = next + 2;
        continue;
      }
      if (bytes[next] == '}') h_.fail("a format has a } without {");
      const size_t end = end_of_field(next + 1, to);
      auto made = field(next + 1, end, levels);
      h_.charge(made.size());
      out.append(format_.is_markup() ? escaped(made) : made);
      at = end + 1;
    }
    return out;
  }

  size_t end_of_field(size_t at, size_t to) {
    size_t open = 1;
    for (; at < to; ++at) {
      if (format_.bytes()[at] == '{') ++open;
      if (format_.bytes()[at] == '}' && --open == 0) return at;
    }
    h_.fail("a format has a { without }");
  }

  text field(size_t from, size_t to, int levels) {
    const std::string_view bytes{format_.bytes()};
    const auto inner = bytes.substr(from, to - from);
    const auto name_size = std::min(inner.find_first_of("!:"), inner.size());
    auto x = named(inner.substr(0, name_size));
    size_t at = from + name_size;
    if (at < to && bytes[at] == '!') {
      const char how = at + 1 < to ? bytes[at + 1] : ' ';
      if (how != 'r' && how != 's' && how != 'a') h_.fail("a format converts with !r, !s or !a");
      x = h_.make_text(how == 's' ? to_text(h_, x) : to_repr(h_, x));
      at += 2;
      if (at < to && bytes[at] != ':') h_.fail("a format has more than one letter behind !");
    }
    const auto spec = at < to ? part(at + 1, to, levels - 1).bytes() : std::string{};
    return formatted(h_, x, spec);
  }

  /// The value of `0`, `name`, `a.b[c]` or the next one.
  value named(std::string_view path) {
    const auto end = std::min(path.find_first_of(".["), path.size());
    const auto head = path.substr(0, end);
    value x = head.empty() || is_digit(head[0]) ? at_place(head) : by_name(head);
    for (path.remove_prefix(end); !path.empty();) {
      const bool is_item = path[0] == '[';
      const auto stop =
          is_item ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
      if (stop == std::string_view::npos || stop == 1)
        h_.fail("a format has a field without its end");
      const std::string key{path.substr(1, stop - 1)};
      const bool is_number = std::ranges::all_of(key, is_digit) && key.size() < 10;
      x = !is_item    ? get_attribute(h_, x, key)
          : is_number ? get_item(h_, x, static_cast<int64_t>(std::stoll(key)))
                      : get_item(h_, x, h_.make_text(key));
      path.remove_prefix(stop + (is_item ? 1 : 0));
      if (is_item && !path.empty() && path[0] != '.' && path[0] != '[')
        h_.fail("a format has letters behind ]");
    }
    return x;
  }

  value at_place(std::string_view number) {
    size_t at = 0;
    const auto place = number.empty() ? next_ : number_at(h_, number, at, 1'000'000);
    if (at != number.size())
      h_.fail("a format has a field that begins with a digit and is no number");
    if ((number.empty() ? next_ < 0 : next_ > 0))
      h_.fail("a format mixes fields with numbers and without");
    next_ = number.empty() ? next_ + 1 : -1;
    if (static_cast<size_t>(place) >= args_.positional.size())
      h_.fail("a format has more fields than values");
    return args_.positional[static_cast<size_t>(place)];
  }

  value by_name(std::string_view name) {
    const auto found = std::ranges::find(args_.named, name, [](const auto& n) { return n.first; });
    if (found == args_.named.end()) h_.fail("a format has no value named " + std::string{name});
    return found->second;
  }

  heap& h_;
  const text& format_;
  arguments& args_;
  int64_t next_ = 0; ///< of fields without a number; below 0: they have numbers
};

} // namespace

text percent_text(heap& h, const text& format, const std::vector<value>& values,
                  const dict_object* named) {
  const auto& bytes = format.bytes();
  text out;
  size_t used = 0;
  size_t from = 0;
  const auto next_value = [&]() -> const value& {
    if (used >= values.size()) h.fail("a format has more conversions than values");
    return values[used++];
  };
  bool by_name = false;
  for (size_t at; (at = bytes.find('%', from)) != std::string::npos;) {
    h.step();
    out.append_range(format, from, at++);
    const value* x = nullptr;
    if (at < bytes.size() && bytes[at] == '(') {
      const auto end = bytes.find(')', at);
      if (end == std::string::npos || named == nullptr)
        h.fail("%( needs a dict and a name in brackets");
      x = find_text(*named, std::string_view{bytes}.substr(at + 1, end - at - 1));
      if (x == nullptr) h.fail("a format names what is not in the dict");
      by_name = true;
      at = end + 1;
    }
    field_style style;
    style.align = '>';
    bool zeros = false;
    for (; at < bytes.size() && std::string_view{"-+ #0"}.find(bytes[at]) != std::string_view::npos;
         ++at) {
      if (bytes[at] == '-') style.align = '<';
      if (bytes[at] == '+' || (bytes[at] == ' ' && style.sign != '+')) style.sign = bytes[at];
      if (bytes[at] == '#') style.prefix = true;
      if (bytes[at] == '0') zeros = true;
    }
    style.width = number_at(h, bytes, at, width_max);
    if (at < bytes.size() && bytes[at] == '.')
      style.precision = static_cast<int>(number_at(h, bytes, ++at, precision_max));
    while (at < bytes.size() && (bytes[at] == 'h' || bytes[at] == 'l' || bytes[at] == 'L')) ++at;
    if (at >= bytes.size()) h.fail("a format ends after %");
    style.type = bytes[at];
    from = at + 1;
    if (style.type == '%') {
      out.append("%", true);
      continue;
    }
    const bool is_text = std::string_view{"srac"}.find(style.type) != std::string_view::npos;
    if (zeros && style.align == '>' && !is_text) style.fill = "0", style.align = '=';
    out.append(percent_field(h, x != nullptr ? *x : next_value(), style, format.is_markup()));
  }
  out.append_range(format, from, bytes.size());
  if (used < values.size() && named == nullptr && !by_name)
    h.fail("a format has fewer conversions than values");
  return out.as_markup(format.is_markup());
}

text format_text(heap& h, const text& format, arguments& args) {
  return brace_format{h, format, args}.run();
}

} // namespace lamella::model::jinja
