/// Formats as Python has them: `'%d' % x` and `'{:d}'.format(x)`.
#include "model/jinja/fields.hpp"

#include <algorithm>

namespace lamella::model::jinja {
namespace {

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
