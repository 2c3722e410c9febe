/// Methods of texts, dicts and lists.
#include "model/jinja/builtins.hpp"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace lamella::model::jinja {
namespace {

constexpr std::array<std::string_view, 31> text_methods{
    "upper",   "lower",     "title",      "capitalize",   "strip",        "lstrip",
    "rstrip",  "split",     "rsplit",     "splitlines",   "startswith",   "endswith",
    "replace", "find",      "rfind",      "index",        "count",        "join",
    "isdigit", "isalpha",   "isalnum",    "isspace",      "isupper",      "islower",
    "zfill",   "partition", "rpartition", "removeprefix", "removesuffix", "center",
    "format"};
constexpr std::array<std::string_view, 5> dict_methods{"get", "items", "keys", "values", "copy"};
constexpr std::array<std::string_view, 6> dict_changes{"clear",      "pop",    "popitem",
                                                       "setdefault", "update", "fromkeys"};
constexpr std::array<std::string_view, 2> list_methods{"index", "count"};
constexpr std::array<std::string_view, 8> list_changes{"append", "clear", "pop",    "reverse",
                                                       "insert", "sort",  "extend", "remove"};

bool is_in(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A change that looks at more than one run at a time; mixed texts come out untrusted.
template <class F> text changed_whole(const text& x, F f) {
  if (x.runs().size() <= 1) return x.mapped(f);
  return text{f(x.bytes()), false};
}

/// The parts between separators, at most `limit` cuts; from the right in reverse order.
std::vector<byte_range> cut_at(const std::string& bytes, const std::string& separator, size_t limit,
                               bool from_right) {
  std::vector<byte_range> parts;
  size_t from = 0;
  size_t to = bytes.size();
  while (parts.size() < limit && (!from_right || to >= separator.size())) {
    const auto at =
        from_right ? bytes.rfind(separator, to - separator.size()) : bytes.find(separator, from);
    if (at == std::string::npos) break;
    if (from_right) {
      parts.push_back({at + separator.size(), to});
      to = at;
    } else {
      parts.push_back({from, at});
      from = at + separator.size();
    }
  }
  parts.push_back({from, to});
  return parts;
}

/// The words between white space from the right, in reverse order; what is left after `limit` cuts
/// is the last.
std::vector<byte_range> words_from_right(const std::string& bytes, size_t limit) {
  std::vector<byte_range> parts;
  size_t to = bytes.size();
  while (true) {
    to = strip(std::string_view{bytes}.substr(0, to), false, true).to;
    if (to == 0) return parts;
    if (parts.size() >= limit) {
      parts.push_back({0, to});
      return parts;
    }
    size_t from = to;
    while (from > 0) {
      size_t before = from - 1;
      while (before > 0 && (static_cast<unsigned char>(bytes[before]) & 0xc0) == 0x80) --before;
      if (is_space(character_at(bytes, before))) break;
      from = before;
    }
    parts.push_back({from, to});
    to = from;
  }
}

/// The words between white space; what is left after `limit` cuts is the last.
std::vector<byte_range> words_from_left(const std::string& bytes, size_t limit) {
  std::vector<byte_range> parts;
  size_t at = 0;
  while (true) {
    while (at < bytes.size() && is_space(character_at(bytes, at))) at += character_bytes(bytes, at);
    if (at >= bytes.size()) return parts;
    size_t to = at;
    if (parts.size() >= limit) {
      to = bytes.size();
    } else {
      while (to < bytes.size() && !is_space(character_at(bytes, to)))
        to += character_bytes(bytes, to);
    }
    parts.push_back({at, to});
    if (parts.size() > limit) return parts;
    at = to;
  }
}

/// split(separator, most) of Python, from either end; no separator cuts at white space.
std::vector<value> split(heap& h, const text& x, const text* separator, int64_t most,
                         bool from_right) {
  const auto& bytes = x.bytes();
  const auto limit = most < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(most);
  if (separator != nullptr && separator->bytes().empty())
    h.fail("split needs a separator that is not empty");
  auto parts = separator != nullptr ? cut_at(bytes, separator->bytes(), limit, from_right)
               : from_right         ? words_from_right(bytes, limit)
                                    : words_from_left(bytes, limit);
  if (from_right) std::ranges::reverse(parts);
  std::vector<value> made;
  made.reserve(parts.size());
  for (const auto& part : parts) made.push_back(h.make_text(x.part(part.from, part.to)));
  return made;
}

text replaced(heap& h, const text& x, const text& old, const text& with, int64_t most) {
  const auto& bytes = x.bytes();
  text out;
  size_t from = 0;
  int64_t count = 0;
  if (old.empty()) {
    // Between all characters, and at both ends.
    const auto positions = character_positions(bytes);
    for (size_t i = 0; i < positions.size(); ++i) {
      if (most < 0 || count < most) {
        h.charge(with.size());
        out.append(with);
        ++count;
      }
      if (i + 1 < positions.size()) out.append_range(x, positions[i], positions[i + 1]);
    }
    return out;
  }
  while (most < 0 || count < most) {
    const auto at = bytes.find(old.bytes(), from);
    if (at == std::string::npos) break;
    h.charge(with.size());
    out.append_range(x, from, at);
    out.append(with);
    from = at + old.size();
    ++count;
  }
  out.append_range(x, from, bytes.size());
  return out;
}

bool has_affix(heap& h, const text& x, const value& affix, bool at_end) {
  if (const auto* l = std::get_if<const list_object*>(&affix); l != nullptr && (*l)->is_tuple())
    return std::ranges::any_of((*l)->items, [&](const value& each) {
      return std::holds_alternative<const text*>(each) && has_affix(h, x, each, at_end);
    });
  const auto* part = std::get_if<const text*>(&affix);
  if (part == nullptr) h.fail("startswith and endswith need a text or a tuple of texts");
  return at_end ? x.bytes().ends_with((*part)->bytes()) : x.bytes().starts_with((*part)->bytes());
}

/// True when there are characters and all pass.
template <class F> bool all_characters(const text& x, F f) {
  const auto& bytes = x.bytes();
  for (size_t at = 0; at < bytes.size(); at += character_bytes(bytes, at))
    if (!f(character_at(bytes, at))) return false;
  return !bytes.empty();
}

/// Some cased characters, all of the case that `wanted` leaves alone.
bool is_cased(const text& x, bool upper) {
  bool some = false;
  const bool fits = all_characters(x, [&](char32_t c) {
    const auto u = static_cast<UChar32>(c);
    const bool is_upper = u_isUUppercase(u);
    const bool is_lower = u_isULowercase(u);
    some = some || (upper ? is_upper : is_lower);
    return !(upper ? is_lower : is_upper) && u_charType(u) != U_TITLECASE_LETTER;
  });
  return fits && some;
}

bool has_class(const text& x, const std::string& name) {
  if (name == "isspace") return all_characters(x, is_space);
  if (name == "isupper" || name == "islower") return is_cased(x, name == "isupper");
  return all_characters(x, [&](char32_t c) {
    const auto u = static_cast<UChar32>(c);
    if (name == "isalnum") return is_alphanumeric(c);
    if (name == "isalpha") return (U_GET_GC_MASK(u) & U_GC_L_MASK) != 0;
    const auto type = u_getIntPropertyValue(u, UCHAR_NUMERIC_TYPE);
    return type == U_NT_DECIMAL || type == U_NT_DIGIT;
  });
}

value part_tuple(heap& h, const text& x, const text& separator, bool last) {
  if (separator.empty()) h.fail("partition needs a separator that is not empty");
  const auto at = last ? x.bytes().rfind(separator.bytes()) : x.bytes().find(separator.bytes());
  const auto* empty = h.make_text("");
  if (at == std::string::npos)
    return last ? h.make_list({empty, empty, h.make_text(x)}, list_kind::tuple)
                : h.make_list({h.make_text(x), empty, empty}, list_kind::tuple);
  return h.make_list({h.make_text(x.part(0, at)), h.make_text(separator),
                      h.make_text(x.part(at + separator.size(), x.size()))},
                     list_kind::tuple);
}

value find_text_in(heap& h, const text& x, const text& part, const std::string& name) {
  const auto at = name == "rfind" ? x.bytes().rfind(part.bytes()) : x.bytes().find(part.bytes());
  if (at == std::string::npos) {
    if (name == "index") h.fail("the text is not there");
    return int64_t{-1};
  }
  return static_cast<int64_t>(character_count(std::string_view{x.bytes()}.substr(0, at)));
}

int64_t count_of(const text& x, const text& part) {
  if (part.empty()) return static_cast<int64_t>(character_count(x.bytes())) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = x.bytes().find(part.bytes(), at)) != std::string::npos;
       at += part.size())
    ++count;
  return count;
}

text padded(heap& h, const text& x, int64_t width, const std::string& name) {
  const auto size = static_cast<int64_t>(character_count(x.bytes()));
  if (width <= size) return x;
  const auto missing = static_cast<size_t>(width - size);
  h.charge(missing);
  text out;
  if (name == "zfill") {
    const bool has_sign = x.bytes().starts_with('-') || x.bytes().starts_with('+');
    out.append_range(x, 0, has_sign ? 1 : 0);
    out.append(std::string(missing, '0'), true);
    out.append_range(x, has_sign ? 1 : 0, x.size());
    return out;
  }
  const size_t left = missing / 2 + (missing & static_cast<size_t>(width) & 1); // as Python rounds
  out.append(std::string(left, ' '), true);
  out.append(x);
  out.append(std::string(missing - left, ' '), true);
  return out;
}

/// separator.join(texts) of Python.
text joined(heap& h, const text& separator, const value& texts) {
  text out;
  bool first = true;
  for (const auto& item : elements(h, texts)) {
    const auto* part = std::get_if<const text*>(&item);
    if (part == nullptr) h.fail(std::string{"join needs texts, not "} + type_name(item));
    h.charge((*part)->size() + separator.size());
    if (!first) out.append(separator);
    out.append(**part);
    first = false;
  }
  return out;
}

value call_text(heap& h, const text& x, const std::string& name, arguments& args) {
  h.step(1 + x.size() / 64);
  if (name == "upper") return h.make_text(x.mapped(to_upper));
  if (name == "lower") return h.make_text(x.mapped(to_lower));
  if (name == "title") return h.make_text(changed_whole(x, to_title));
  if (name == "capitalize") return h.make_text(changed_whole(x, to_capitalized));
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const auto set = args.take("chars", none{});
    const auto* chars = std::get_if<const text*>(&set);
    if (chars == nullptr && !std::holds_alternative<none>(set)) h.fail(name + " needs a text");
    if (chars != nullptr) h.step(x.size() * (*chars)->size() / 64);
    const auto range = strip(x.bytes(), name != "rstrip", name != "lstrip",
                             chars != nullptr ? &(*chars)->bytes() : nullptr);
    return h.make_text(x.part(range.from, range.to));
  }
  if (name == "split" || name == "rsplit") {
    const auto separator = args.take("sep", none{});
    const auto most = args.take_whole("maxsplit").value_or(-1);
    const auto* cut = std::get_if<const text*>(&separator);
    if (cut == nullptr && !std::holds_alternative<none>(separator)) h.fail("split needs a text");
    return h.make_list(split(h, x, cut != nullptr ? *cut : nullptr, most, name == "rsplit"));
  }
  if (name == "splitlines") {
    std::vector<value> made;
    for (const auto& line : lines_of(x.bytes(), args.take_truth("keepends", false)))
      made.push_back(h.make_text(x.part(line.from, line.to)));
    return h.make_list(std::move(made));
  }
  if (name == "startswith" || name == "endswith")
    return has_affix(h, x, args.need("prefix"), name == "endswith");
  if (name == "replace") {
    const auto* old = args.need_text("old");
    const auto* with = args.need_text("new");
    return h.make_text(replaced(h, x, *old, *with, args.take_whole("count").value_or(-1)));
  }
  if (name == "find" || name == "rfind" || name == "index")
    return find_text_in(h, x, *args.need_text("sub"), name);
  if (name == "count") return count_of(x, *args.need_text("sub"));
  if (name == "join") return h.make_text(joined(h, x, args.need("iterable")));
  if (name == "zfill" || name == "center")
    return h.make_text(padded(h, x, args.need_whole("width"), name));
  if (name == "partition" || name == "rpartition")
    return part_tuple(h, x, *args.need_text("sep"), name == "rpartition");
  if (name == "removeprefix" || name == "removesuffix") {
    const auto& part = args.need_text("affix")->bytes();
    if (name == "removeprefix")
      return h.make_text(x.part(x.bytes().starts_with(part) ? part.size() : 0, x.size()));
    return h.make_text(x.part(0, x.size() - (x.bytes().ends_with(part) ? part.size() : 0)));
  }
  if (name == "format") return h.make_text(format_text(h, x, args));
  return has_class(x, name);
}

value call_cycler(cycler_object& x, const std::string& name) {
  if (name == "reset") {
    x.at = 0;
    return none{};
  }
  return x.items[std::exchange(x.at, (x.at + 1) % x.items.size())];
}

value call_dict(heap& h, const dict_object& x, const std::string& name, arguments& args) {
  h.step(1 + x.members.size() / 8);
  if (name == "get") {
    const auto key = args.need("key");
    const auto otherwise = args.take("default", none{});
    const auto* member = find(h, x, key);
    return member != nullptr ? *member : otherwise;
  }
  if (name == "copy") {
    auto* made = h.make_dict();
    for (const auto& [key, item] : x.members) h.put(*made, key, item);
    return static_cast<const dict_object*>(made);
  }
  std::vector<value> made;
  for (const auto& [key, item] : x.members)
    made.push_back(name == "items"  ? value{h.make_list({key, item}, list_kind::tuple)}
                   : name == "keys" ? key
                                    : item);
  return h.make_list(std::move(made), name == "items"  ? list_kind::items
                                      : name == "keys" ? list_kind::keys
                                                       : list_kind::values);
}

value call_list(heap& h, const list_object& x, const std::string& name, arguments& args) {
  const auto wanted = args.need("value");
  int64_t count = 0;
  for (size_t i = 0; i < x.items.size(); ++i) {
    if (!equal(h, x.items[i], wanted)) continue;
    if (name == "index") return static_cast<int64_t>(i);
    ++count;
  }
  if (name == "index") h.fail("the value is not in the list");
  return count;
}

} // namespace

method_state find_method(const value& self, std::string_view name) {
  const auto state = [&](const auto& callable, const auto& changes) {
    return is_in(callable, name)  ? method_state::callable
           : is_in(changes, name) ? method_state::forbidden
                                  : method_state::absent;
  };
  if (std::holds_alternative<const text*>(self))
    return state(text_methods, std::array<std::string_view, 0>{});
  if (std::holds_alternative<const dict_object*>(self)) return state(dict_methods, dict_changes);
  if (const auto* l = std::get_if<const list_object*>(&self))
    return !(*l)->has_places() ? method_state::absent
           : (*l)->is_tuple()  ? state(list_methods, std::array<std::string_view, 0>{})
                               : state(list_methods, list_changes);
  if (std::holds_alternative<cycler_object*>(self))
    return name == "next" || name == "reset" ? method_state::callable : method_state::absent;
  return method_state::absent;
}

value call_method(heap& h, const value& self, const std::string& name, arguments& args) {
  value result;
  if (const auto* s = std::get_if<const text*>(&self))
    result = (*s)->is_markup() ? call_markup(h, **s, name, args) : call_text(h, **s, name, args);
  else if (const auto* d = std::get_if<const dict_object*>(&self))
    result = call_dict(h, **d, name, args);
  else if (auto* const* c = std::get_if<cycler_object*>(&self))
    result = call_cycler(**c, name);
  else
    result = call_list(h, *std::get<const list_object*>(self), name, args);
  args.done();
  return result;
}

} // namespace lamella::model::jinja
