/// Arguments of calls, and global functions.
#include "model/jinja/builtins.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace lamella::model::jinja {

std::optional<value> arguments::take(std::string_view parameter) {
  const auto by_name = std::ranges::find(named, parameter, [](const auto& n) { return n.first; });
  if (next_ < positional.size()) {
    if (by_name != named.end()) heap_.fail(name_ + " gets " + by_name->first + " twice");
    return positional[next_++];
  }
  if (by_name == named.end()) return std::nullopt;
  auto taken = by_name->second;
  named.erase(by_name);
  return taken;
}

value arguments::need(std::string_view parameter) {
  if (auto taken = take(parameter)) return *taken;
  heap_.fail(name_ + " needs the argument " + std::string{parameter});
}

const text* arguments::need_text(std::string_view parameter) {
  const auto taken = need(parameter);
  if (const auto* s = std::get_if<const text*>(&taken)) return *s;
  heap_.fail(name_ + " needs a text as " + std::string{parameter} + ", not " + type_name(taken));
}

int64_t arguments::need_whole(std::string_view parameter) {
  const auto taken = take_whole(parameter);
  if (!taken) heap_.fail(name_ + " needs the argument " + std::string{parameter});
  return *taken;
}

std::optional<int64_t> arguments::take_whole(std::string_view parameter) {
  const auto taken = take(parameter);
  if (!taken || std::holds_alternative<none>(*taken)) return std::nullopt;
  if (const auto n = as_whole(*taken)) return n;
  heap_.fail(name_ + " needs an integer as " + std::string{parameter} + ", not "
             + type_name(*taken));
}

bool arguments::take_truth(std::string_view parameter, bool otherwise) {
  const auto taken = take(parameter);
  return taken ? truth(*taken) : otherwise;
}

void arguments::done() {
  if (next_ < positional.size()) heap_.fail(name_ + " gets too many arguments");
  if (!named.empty()) heap_.fail(name_ + " has no argument " + named.front().first);
}

namespace {

constexpr std::array<std::string_view, 7> globals{
    "raise_exception", "strftime_now", "namespace", "range", "dict", "cycler", "joiner"};

/// As many numbers as Python's sandbox allows.
constexpr int64_t range_max = 100'000;

value make_range(heap& h, arguments& args) {
  int64_t start = 0;
  int64_t stop = args.need_whole("stop");
  if (const auto second = args.take_whole("second")) {
    start = stop;
    stop = *second;
  }
  const int64_t step = args.take_whole("step").value_or(1);
  args.done();
  if (step == 0) h.fail("the step of range is 0");
  std::vector<value> numbers;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<int64_t>(numbers.size()) >= range_max)
      h.fail_limit("range is longer than " + std::to_string(range_max));
    numbers.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  h.step(numbers.size() / 8);
  return h.make_list(std::move(numbers));
}

value now_text(environment& e, arguments& args) {
  const auto format = args.need_text("format")->bytes();
  args.done();
  const auto days = std::chrono::floor<std::chrono::days>(e.now);
  const std::chrono::year_month_day date{days};
  const std::chrono::hh_mm_ss time{e.now - days};
  std::tm parts{};
  parts.tm_year = static_cast<int>(date.year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  parts.tm_hour = static_cast<int>(time.hours().count());
  parts.tm_min = static_cast<int>(time.minutes().count());
  parts.tm_sec = static_cast<int>(time.seconds().count());
  parts.tm_wday = static_cast<int>(std::chrono::weekday{days}.c_encoding());
  parts.tm_yday = static_cast<int>(
      (days - std::chrono::sys_days{date.year() / std::chrono::January / 1}).count());
  if (format.empty()) return e.memory.make_text("");
  if (format.size() > 256) e.memory.fail("the format of strftime_now is longer than 256 bytes");
  // Only plain conversions: a width such as %999999d would make a line as long as it says.
  for (size_t i = 0; i < format.size(); ++i)
    if (format[i] == '%'
        && (++i >= format.size()
            || std::string_view{"aAbBdHIjmMpSUwWxXyYzZcefFDTRhnt%uVGCgklP"}.find(format[i])
                   == std::string_view::npos))
      e.memory.fail("strftime_now does not know the conversion in '" + format + "'");
  std::array<char, 8192> out{};
  const size_t size = std::strftime(out.data(), out.size(), format.c_str(), &parts);
  return e.memory.make_text(std::string_view{out.data(), size});
}

value make_namespace(heap& h, arguments& args) {
  auto* made = h.make_namespace();
  if (const auto first = args.positional.empty() ? std::nullopt : args.take("")) {
    const auto* d = std::get_if<const dict_object*>(&*first);
    if (d == nullptr) h.fail("namespace needs a dict or named values");
    for (const auto& [key, item] : (*d)->members) made->members[to_text(h, key).bytes()] = item;
  }
  for (const auto& [name, item] : args.named) made->members[name] = item;
  args.named.clear();
  args.done();
  return made;
}

value make_dict(heap& h, arguments& args) {
  auto* made = h.make_dict();
  if (const auto first = args.positional.empty() ? std::nullopt : args.take("")) {
    if (const auto* d = std::get_if<const dict_object*>(&*first)) {
      for (const auto& [key, item] : (*d)->members) h.put(*made, key, item);
    } else {
      for (const auto& pair : elements(h, *first)) {
        const auto both = elements(h, pair);
        if (both.size() != 2) h.fail("dict needs pairs");
        h.put(*made, both[0], both[1]);
      }
    }
  }
  for (const auto& [name, item] : args.named) h.put(*made, h.make_text(name), item);
  args.named.clear();
  args.done();
  return static_cast<const dict_object*>(made);
}

value make_cycler(heap& h, arguments& args) {
  std::vector<value> items;
  while (auto each = args.take("")) items.push_back(*each);
  args.done();
  if (items.empty()) h.fail("cycler needs values");
  return h.make_cycler(std::move(items));
}

value make_joiner(heap& h, arguments& args) {
  auto* made = h.make_function();
  made->what = function_object::kind::joiner;
  made->self = args.take("sep", h.make_text(", "));
  args.done();
  return static_cast<const function_object*>(made);
}

} // namespace

bool is_global(std::string_view name) { return std::ranges::find(globals, name) != globals.end(); }

value call_global(environment& e, const std::string& name, arguments& args) {
  auto& h = e.memory;
  if (name == "raise_exception") {
    const auto message = to_text(h, args.need("message")).bytes();
    throw chat_template_error{chat_template_error::kind::raised, h.line, message};
  }
  if (name == "strftime_now") return now_text(e, args);
  if (name == "namespace") return make_namespace(h, args);
  if (name == "range") return make_range(h, args);
  if (name == "cycler") return make_cycler(h, args);
  if (name == "joiner") return make_joiner(h, args);
  return make_dict(h, args);
}

} // namespace lamella::model::jinja
