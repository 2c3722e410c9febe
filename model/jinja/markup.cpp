/// Methods of markup, the texts that |safe and |escape make.
#include "model/jinja/builtins.hpp"

#include <algorithm>
#include <array>

namespace lamella::model::jinja {

value call_markup(heap& h, const text& x, const std::string& name, arguments& args) {
  static constexpr std::array<std::string_view, 13> escape{
      "capitalize", "title", "lower", "upper",     "replace",    "lstrip", "rstrip",
      "center",     "strip", "zfill", "partition", "rpartition", "join"};
  static constexpr std::array<std::string_view, 4> keep{"split", "rsplit", "splitlines", "format"};
  const auto safe = [&](value& each) {
    if (const auto* s = std::get_if<const text*>(&each)) each = h.make_text(escaped(**s));
  };
  const bool escapes = std::ranges::count(escape, name) != 0;
  if (name == "join" && !args.positional.empty()) {
    auto parts = elements(h, args.positional.front());
    for (auto& part : parts) part = h.make_text(escaped(to_text(h, part)));
    args.positional.front() = h.make_list(std::move(parts));
  } else if (escapes) {
    for (auto& each : args.positional) safe(each);
    for (auto& each : args.named) safe(each.second);
  }
  const value made = name == "format" ? value{h.make_text(format_text(h, x, args))}
                                      : call_method(h, h.make_text(x.as_markup(false)), name, args);
  if (!escapes && !std::ranges::count(keep, name) != 0) return made;
  const auto marked = [&](const value& each) -> value {
    const auto* s = std::get_if<const text*>(&each);
    return s != nullptr ? h.make_text((*s)->as_markup()) : each;
  };
  const auto* l = std::get_if<const list_object*>(&made);
  if (l == nullptr) return marked(made);
  auto items = (*l)->items;
  for (auto& item : items) item = marked(item);
  return h.make_list(std::move(items), (*l)->kind);
}

} // namespace lamella::model::jinja
