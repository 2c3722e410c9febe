#include "model/jinja/text_filters.hpp"

#include <algorithm>

namespace lamella::model::jinja {
namespace {

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

/// Percent-encoded as urllib's quote() does, but for letters, digits, _.-~ and `safe`.
std::string quoted(std::string_view bytes, char safe) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : bytes) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                       || std::string_view{"_.-~"}.find(c) != std::string_view::npos;
    if (plain || (safe != 0 && c == safe))
      out += c;
    else
      (((out += '%') += hex[u >> 4]) += hex[u & 15]);
  }
  return out;
}

std::string quoted_path(std::string_view bytes) { return quoted(bytes, '/'); }

/// Of the fields of a form, where a space is a plus.
std::string quoted_field(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at <= bytes.size();) {
    const auto end = std::min(bytes.find(' ', at), bytes.size());
    out += (at > 0 ? "+" : "") + quoted(bytes.substr(at, end - at), 0);
    at = end + 1;
  }
  return out;
}

} // namespace

value mapped_text(environment& e, const value& x, std::string (*f)(std::string_view)) {
  const auto s = to_text(e.memory, x);
  e.memory.step(s.size() / 64);
  return e.memory.make_text(s.mapped(f).as_markup(s.is_markup()));
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

value filter_replace(environment& e, const value& x, arguments& args) {
  const auto* s = e.memory.make_text(to_text(e.memory, x).as_markup(false));
  arguments inner{e.memory, "replace"};
  inner.positional.push_back(e.memory.make_text(to_text(e.memory, args.need("old"))));
  inner.positional.push_back(e.memory.make_text(to_text(e.memory, args.need("new"))));
  inner.positional.push_back(args.take("count", none{}));
  return call_method(e.memory, s, "replace", inner);
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
  return h.make_text(out.as_markup(s.is_markup()));
}

value filter_escape(environment& e, const value& x, arguments&) {
  const auto s = to_text(e.memory, x);
  e.memory.charge(s.size());
  return e.memory.make_text(escaped(s));
}

value filter_forceescape(environment& e, const value& x, arguments&) {
  const auto s = to_text(e.memory, x);
  e.memory.charge(s.size());
  return e.memory.make_text(escaped(s.as_markup(false)));
}

value filter_safe(environment& e, const value& x, arguments&) {
  return e.memory.make_text(to_text(e.memory, x).as_markup());
}

value filter_format(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  std::vector<value> values;
  while (auto each = args.take("")) values.push_back(*each);
  if (args.named.empty()) return h.make_text(percent_text(h, to_text(h, x), values));
  if (!values.empty()) h.fail("format takes values with names or without, not both");
  auto* named = h.make_dict();
  for (const auto& [name, item] : args.named) h.put(*named, h.make_text(name), item);
  args.named.clear();
  return h.make_text(
      percent_text(h, to_text(h, x), {static_cast<const dict_object*>(named)}, named));
}

value filter_center(environment& e, const value& x, arguments& args) {
  arguments inner{e.memory, "center"};
  inner.positional.push_back(args.take("width", int64_t{80}));
  return call_method(e.memory, e.memory.make_text(to_text(e.memory, x)), "center", inner);
}

value filter_truncate(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto length = args.take_whole("length").value_or(255);
  const bool kill_words = args.take_truth("killwords", false);
  const auto end = to_text(h, args.take("end", h.make_text("...")));
  const auto leeway = args.take_whole("leeway").value_or(5);
  const auto end_size = static_cast<int64_t>(character_count(end.bytes()));
  if (length < end_size || length > int64_t{1} << 40)
    h.fail("truncate needs a length of at least that of its end");
  if (leeway < 0 || leeway > int64_t{1} << 40) h.fail("the leeway of truncate is below 0");
  const auto s = to_text(h, x);
  const auto positions = character_positions(s.bytes());
  h.step(positions.size() / 8);
  if (static_cast<int64_t>(positions.size()) - 1 <= length + leeway) return h.make_text(s);
  size_t to = positions[static_cast<size_t>(length - end_size)];
  if (!kill_words && to > 0)
    if (const auto space = s.bytes().rfind(' ', to - 1); space != std::string::npos) to = space;
  text out = s.part(0, to);
  out.append(s.is_markup() ? escaped(end) : end);
  return h.make_text(out.as_markup(s.is_markup()));
}

value filter_wordcount(environment& e, const value& x, arguments&) {
  const auto s = to_text(e.memory, x);
  const auto& bytes = s.bytes();
  e.memory.step(bytes.size() / 8);
  int64_t words = 0;
  bool within = false;
  for (size_t at = 0; at < bytes.size(); at += character_bytes(bytes, at)) {
    const bool is_word = bytes[at] == '_' || is_alphanumeric(character_at(bytes, at));
    words += is_word && !within ? 1 : 0;
    within = is_word;
  }
  return words;
}

value filter_urlencode(environment& e, const value& x, arguments&) {
  auto& h = e.memory;
  const bool is_many = std::holds_alternative<const list_object*>(x)
                       || std::holds_alternative<const dict_object*>(x);
  const auto mapped = [&](const value& each, std::string (*f)(std::string_view)) {
    const auto s = to_text(h, each);
    h.charge(3 * s.size());
    return s.mapped(f);
  };
  if (!is_many) return h.make_text(mapped(x, quoted_path));
  arguments none_given{h, "items"};
  const bool is_dict = std::holds_alternative<const dict_object*>(x);
  text out;
  for (const auto& pair : elements(h, is_dict ? call_method(h, x, "items", none_given) : x)) {
    const auto both = elements(h, pair);
    if (both.size() != 2) h.fail("urlencode needs pairs of names and values");
    if (!out.empty()) out.append("&", true);
    out.append(mapped(both[0], quoted_field));
    out.append("=", true);
    out.append(mapped(both[1], quoted_field));
  }
  return h.make_text(std::move(out));
}

value filter_xmlattr(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const bool space = args.take_truth("autospace", true);
  const auto* d = std::get_if<const dict_object*>(&x);
  if (d == nullptr) h.fail("xmlattr needs a dict");
  text out;
  for (const auto& [key, item] : (*d)->members) {
    if (std::holds_alternative<none>(item) || std::holds_alternative<undefined>(item)) continue;
    const auto name = to_text(h, key);
    if (name.bytes().find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      h.fail("a name of xmlattr has a space, / > or = in it");
    const auto shown = to_text(h, item);
    h.charge(name.size() + shown.size());
    if (space || !out.empty()) out.append(" ", true);
    out.append(escaped(name));
    out.append("=\"", true);
    out.append(escaped(shown));
    out.append("\"", true);
  }
  return h.make_text(std::move(out));
}

} // namespace lamella::model::jinja
