/// Filters of single values, and the table of all filters.
#include "model/jinja/list_filters.hpp"
#include "model/jinja/text_filters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

namespace lamella::model::jinja {
namespace {

using filter_function = value (*)(environment&, const value&, arguments&);

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
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && !(*l)->is_lazy())
    return static_cast<int64_t>((*l)->items.size());
  if (const auto* d = std::get_if<const dict_object*>(&x))
    return static_cast<int64_t>((*d)->members.size());
  if (std::holds_alternative<undefined>(x)) return int64_t{0};
  e.memory.fail(std::string{type_name(x)} + " has no length");
}

/// Python's int(text, base): white space, a sign, the prefix of the base, digits, single _ between
/// them. Nothing where it is none; fails where it is too large for us.
std::optional<int64_t> whole_of(heap& h, const std::string& bytes, int64_t base) {
  const auto range = strip(bytes, true, true);
  auto digits = bytes.substr(range.from, range.to - range.from);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const auto prefix = to_lower(digits.substr(0, 2));
  const int64_t meant = prefix == "0x" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 0;
  if (meant != 0 && (base == 0 || base == meant)) {
    digits.erase(0, 2);
    if (digits.starts_with('_')) digits.erase(0, 1);
    base = meant;
  } else if (base == 0) {
    if (digits.starts_with('0') && digits.find_first_not_of("0_") != std::string::npos) return {};
    base = 10;
  }
  if (digits.starts_with('_') || digits.ends_with('_') || digits.find("__") != std::string::npos)
    return {};
  std::erase(digits, '_');
  if (digits.starts_with('-')) return {};
  if (negative) digits.insert(0, 1, '-');
  int64_t n = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, ec] = std::from_chars(digits.data(), last, n, static_cast<int>(base));
  if (end != last || digits.empty() || ec == std::errc::invalid_argument) return {};
  if (ec == std::errc::result_out_of_range) h.fail("an integer is too large");
  return n;
}

/// Other texts than those of integers go by way of float().
value filter_int(environment& e, const value& x, arguments& args) {
  const auto otherwise = args.take("default", int64_t{0});
  const auto base = args.take_whole("base").value_or(10);
  if (const auto n = as_whole(x)) return *n;
  if (as_big(x) != nullptr) return x;
  double real = 0;
  if (const auto* d = std::get_if<double>(&x)) {
    real = *d;
  } else if (const auto* s = std::get_if<const text*>(&x)) {
    if (base != 0 && (base < 2 || base > 36)) e.memory.fail("the base of int is not 0 or 2 to 36");
    if (const auto n = whole_of(e.memory, (*s)->bytes(), base)) return *n;
    const auto range = strip((*s)->bytes(), true, true);
    const char* first = (*s)->bytes().data() + range.from;
    const char* last = (*s)->bytes().data() + range.to;
    if (first != last && *first == '+') ++first;
    const auto part = std::from_chars(first, last, real);
    if (part.ec != std::errc{} || part.ptr != last || first == last) return otherwise;
  } else if (const auto* u = std::get_if<undefined>(&x)) {
    e.memory.fail(undefined_message(*u));
  } else {
    return otherwise;
  }
  if (!std::isfinite(real)) return otherwise;
  if (std::abs(real) >= 9.2e18) e.memory.fail("an integer is too large");
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
  if (const auto* big = as_big(x))
    return big->is_negative() ? value{e.memory.make_big({big->digits.substr(1)})} : x;
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
  if (as_big(x) != nullptr && precision >= 0) return x;
  if (precision < 0) return std::nearbyint(number * scale) / scale;
  // The decimal digits round half to even, as Python does.
  std::array<char, 800> digits{};
  std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(precision), number);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + std::char_traits<char>::length(digits.data()),
                  rounded);
  return rounded;
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
      {"safe", filter_safe},
      {"abs", filter_abs},
      {"round", filter_round},
      {"indent", filter_indent},
      {"escape", filter_escape},
      {"e", filter_escape},
      {"forceescape", filter_forceescape},
      {"center", filter_center},
      {"truncate", filter_truncate},
      {"wordcount", filter_wordcount},
      {"urlencode", filter_urlencode},
      {"xmlattr", filter_xmlattr},
      {"tojson", filter_tojson},
      {"pprint", filter_pprint},
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
      {"slice", filter_slice},
      {"groupby", filter_groupby},
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
