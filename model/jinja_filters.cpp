/// Filters of single values, and the table of all filters.
#include "model/jinja_list_filters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

namespace lamella::model::jinja {
namespace {

using filter_function = value (*)(environment&, const value&, arguments&);

value mapped_text(environment& e, const value& x, std::string (*f)(std::string_view)) {
  const auto s = to_text(e.memory, x);
  e.memory.step(s.size() / 64);
  return e.memory.make_text(s.mapped(f));
}

/// Words begin after spaces, hyphens and opening brackets, and inner capitals go.
std::string title_words(std::string_view bytes) {
  std::string out;
  const auto separates = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  for (size_t at = 0; at < bytes.size();) {
    size_t to = at;
    const bool gap = separates(character_at(bytes, at));
    while (to < bytes.size() && separates(character_at(bytes, to)) == gap)
      to += character_bytes(bytes, to);
    const auto word = bytes.substr(at, to - at);
    if (gap) {
      out += word;
    } else {
      const size_t first = character_bytes(word, 0);
      out += to_upper(word.substr(0, first)) + to_lower(word.substr(first));
    }
    at = to;
  }
  return out;
}

value filter_title(environment& e, const value& x, arguments&) {
  const auto s = to_text(e.memory, x);
  e.memory.step(s.size() / 64);
  return e.memory.make_text(s.runs().size() <= 1 ? s.mapped(title_words)
                                                 : text{title_words(s.bytes()), false});
}

value filter_trim(environment& e, const value& x, arguments& args) {
  auto chars = args.take("chars", none{});
  const auto* s = e.memory.make_text(to_text(e.memory, x));
  arguments inner{e.memory, "trim"};
  inner.positional.push_back(chars);
  return call_method(e.memory, s, "strip", inner);
}

value filter_default(environment& e, const value& x, arguments& args) {
  const auto otherwise = args.take("default_value", e.memory.make_text(""));
  const bool by_truth = args.take_truth("boolean", false);
  return std::holds_alternative<undefined>(x) || (by_truth && !truth(x)) ? otherwise : x;
}

value filter_length(environment& e, const value& x, arguments&) {
  if (const auto* s = std::get_if<const text*>(&x)) {
    e.memory.step((*s)->size() / 64);
    return static_cast<int64_t>(character_count((*s)->bytes()));
  }
  if (const auto* l = std::get_if<const list_object*>(&x))
    return static_cast<int64_t>((*l)->items.size());
  if (const auto* d = std::get_if<const dict_object*>(&x))
    return static_cast<int64_t>((*d)->members.size());
  if (std::holds_alternative<undefined>(x)) return int64_t{0};
  e.memory.fail(std::string{type_name(x)} + " has no length");
}

value filter_replace(environment& e, const value& x, arguments& args) {
  const auto* s = e.memory.make_text(to_text(e.memory, x));
  arguments inner{e.memory, "replace"};
  inner.positional.push_back(e.memory.make_text(to_text(e.memory, args.need("old"))));
  inner.positional.push_back(e.memory.make_text(to_text(e.memory, args.need("new"))));
  inner.positional.push_back(args.take("count", none{}));
  return call_method(e.memory, s, "replace", inner);
}

/// Python's int(): white space, a sign and digits; other texts by way of float().
value filter_int(environment& e, const value& x, arguments& args) {
  const auto otherwise = args.take("default", int64_t{0});
  const auto base = args.take_whole("base").value_or(10);
  if (const auto n = as_whole(x)) return *n;
  double real = 0;
  if (const auto* d = std::get_if<double>(&x)) {
    real = *d;
  } else if (const auto* s = std::get_if<const text*>(&x)) {
    const auto range = strip((*s)->bytes(), true, true);
    const char* first = (*s)->bytes().data() + range.from;
    const char* last = (*s)->bytes().data() + range.to;
    if (first != last && *first == '+') ++first;
    if (base < 2 || base > 36) e.memory.fail("the base of int is not 2 to 36");
    int64_t n = 0;
    const auto whole = std::from_chars(first, last, n, static_cast<int>(base));
    if (whole.ec == std::errc{} && whole.ptr == last && first != last) return n;
    const auto part = std::from_chars(first, last, real);
    if (part.ec != std::errc{} || part.ptr != last || first == last) return otherwise;
  } else if (const auto* u = std::get_if<undefined>(&x)) {
    e.memory.fail(undefined_message(*u));
  } else {
    return otherwise;
  }
  if (!std::isfinite(real) || std::abs(real) >= 9.2e18) return otherwise;
  return static_cast<int64_t>(real);
}

value filter_float(environment& e, const value& x, arguments& args) {
  const auto otherwise = args.take("default", 0.0);
  if (is_number(x)) return as_real(x);
  if (const auto* u = std::get_if<undefined>(&x)) e.memory.fail(undefined_message(*u));
  const auto* s = std::get_if<const text*>(&x);
  if (s == nullptr) return otherwise;
  const auto range = strip((*s)->bytes(), true, true);
  const char* first = (*s)->bytes().data() + range.from;
  const char* last = (*s)->bytes().data() + range.to;
  if (first != last && *first == '+') ++first;
  double real = 0;
  const auto result = std::from_chars(first, last, real);
  return result.ec == std::errc{} && result.ptr == last && first != last ? value{real} : otherwise;
}

value filter_string(environment& e, const value& x, arguments&) {
  if (std::holds_alternative<const text*>(x)) return x;
  return e.memory.make_text(to_text(e.memory, x));
}

value filter_abs(environment& e, const value& x, arguments&) {
  if (const auto* d = std::get_if<double>(&x)) return std::abs(*d);
  if (const auto n = as_whole(x))
    return *n < 0 ? arithmetic(e.memory, "*", *n, int64_t{-1}) : value{*n};
  e.memory.fail(std::string{"abs needs a number, not "} + type_name(x));
}

value filter_round(environment& e, const value& x, arguments& args) {
  const auto precision = args.take_whole("precision").value_or(0);
  const auto method = args.take("method");
  const auto how = method ? to_text(e.memory, *method).bytes() : std::string{"common"};
  if (!is_number(x)) e.memory.fail(std::string{"round needs a number, not "} + type_name(x));
  if (precision < -300 || precision > 300)
    e.memory.fail("the precision of round is not -300 to 300");
  const double number = as_real(x);
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (how == "ceil") return std::ceil(number * scale) / scale;
  if (how == "floor") return std::floor(number * scale) / scale;
  if (how != "common") e.memory.fail("round knows common, ceil and floor");
  if (const auto n = as_whole(x); n && precision >= 0) return *n;
  if (precision < 0) return std::nearbyint(number * scale) / scale;
  // The decimal digits round half to even, as Python does.
  std::array<char, 800> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(precision), number);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + std::char_traits<char>::length(digits.data()),
                  rounded);
  return rounded;
}

value filter_indent(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto width = args.take("width", int64_t{4});
  const bool first = args.take_truth("first", false);
  const bool blank = args.take_truth("blank", false);
  text space;
  if (const auto* s = std::get_if<const text*>(&width))
    space = **s;
  else if (const auto n = as_whole(width); n && *n <= 1000)
    space.append(std::string(static_cast<size_t>(std::max<int64_t>(*n, 0)), ' '), true);
  else
    h.fail("the width of indent is not a text or a number up to 1000");
  auto s = to_text(h, x);
  s.append("\n", true);
  text out;
  if (first) out.append(space);
  bool is_first = true;
  for (const auto& line : lines_of(s.bytes(), false)) {
    if (!is_first) {
      out.append("\n", true);
      if (blank || line.from != line.to) out.append(space);
    }
    h.charge(space.size() + line.to - line.from);
    out.append_range(s, line.from, line.to);
    is_first = false;
  }
  return h.make_text(std::move(out));
}

value filter_escape(environment& e, const value& x, arguments&) {
  return mapped_text(e, x, [](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
      switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
      }
    }
    return out;
  });
}

value filter_tojson(environment& e, const value& x, arguments& args) {
  json_style style;
  // The order of parameters in the library that made these templates popular.
  style.ensure_ascii = args.take_truth("ensure_ascii", false);
  const auto indent = args.take_whole("indent");
  if (indent && (*indent < 0 || *indent > 100))
    e.memory.fail("the indent of tojson is not 0 to 100");
  if (indent) style.indent = static_cast<int>(*indent);
  if (const auto separators = args.take("separators"); separators && truth(*separators)) {
    const auto both = elements(e.memory, *separators);
    if (both.size() != 2) e.memory.fail("separators of tojson are two texts");
    style.item_separator = to_text(e.memory, both[0]).bytes();
    style.key_separator = to_text(e.memory, both[1]).bytes();
  }
  style.sort_keys = args.take_truth("sort_keys", false);
  text out;
  write_json(e.memory, out, x, style);
  return e.memory.make_text(std::move(out));
}

value filter_attr(environment& e, const value& x, arguments& args) {
  const auto name = args.need_text("name")->bytes();
  // Members of a dict are items, not attributes.
  if (std::holds_alternative<const dict_object*>(x) && find_method(x, name) == method_state::absent)
    return undefined{};
  return get_attribute(e.memory, x, name);
}

value filter_format(environment& e, const value& x, arguments& args) {
  std::vector<value> values;
  while (auto each = args.take("")) values.push_back(*each);
  return e.memory.make_text(format_text(e.memory, to_text(e.memory, x), values));
}

const std::map<std::string, filter_function, std::less<>>& filters() {
  static const std::map<std::string, filter_function, std::less<>> all{
      {"upper",
       [](environment& e, const value& x, arguments&) { return mapped_text(e, x, to_upper); }},
      {"lower",
       [](environment& e, const value& x, arguments&) { return mapped_text(e, x, to_lower); }},
      {"capitalize",
       [](environment& e, const value& x, arguments& args) {
         return call_method(e.memory, e.memory.make_text(to_text(e.memory, x)), "capitalize", args);
       }},
      {"title", filter_title},
      {"trim", filter_trim},
      {"default", filter_default},
      {"d", filter_default},
      {"length", filter_length},
      {"count", filter_length},
      {"replace", filter_replace},
      {"int", filter_int},
      {"float", filter_float},
      {"string", filter_string},
      {"safe", filter_string},
      {"abs", filter_abs},
      {"round", filter_round},
      {"indent", filter_indent},
      {"escape", filter_escape},
      {"e", filter_escape},
      {"tojson", filter_tojson},
      {"attr", filter_attr},
      {"format", filter_format},
      {"first", filter_first},
      {"last", filter_last},
      {"list", filter_list},
      {"items", filter_items},
      {"join", filter_join},
      {"reverse", filter_reverse},
      {"sort", filter_sort},
      {"unique", filter_unique},
      {"dictsort", filter_dictsort},
      {"min", filter_min},
      {"max", filter_max},
      {"sum", filter_sum},
      {"map", filter_map},
      {"select", filter_select},
      {"reject", filter_reject},
      {"selectattr", filter_selectattr},
      {"rejectattr", filter_rejectattr},
      {"batch", filter_batch},
  };
  return all;
}

} // namespace

bool is_filter(std::string_view name) { return filters().contains(name); }

value apply_filter(environment& e, const std::string& name, const value& input, arguments& args) {
  const auto found = filters().find(name);
  if (found == filters().end()) e.memory.fail("there is no filter named '" + name + "'");
  e.memory.step();
  auto result = found->second(e, input, args);
  args.done();
  return result;
}

} // namespace lamella::model::jinja
