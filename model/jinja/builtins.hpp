/// Filters, tests, methods and global functions.
#pragma once

#include "model/jinja/value.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace lamella::model::jinja {

/// Arguments of one call, taken in the order of the parameters.
class arguments {
public:
  arguments(heap& h, std::string name) : heap_{h}, name_{std::move(name)} {}

  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;

  /// The next parameter, or nothing when the call does not give it.
  std::optional<value> take(std::string_view parameter);
  value take(std::string_view parameter, value otherwise) {
    return take(parameter).value_or(otherwise);
  }
  /// The same with a type; fails with the name of the parameter when it is missing or another type.
  value need(std::string_view parameter);
  const text* need_text(std::string_view parameter);
  int64_t need_whole(std::string_view parameter);
  std::optional<int64_t> take_whole(std::string_view parameter); ///< none counts as not given
  bool take_truth(std::string_view parameter, bool otherwise);
  /// Fails when something was given that nobody took.
  void done();

private:
  heap& heap_;
  std::string name_;
  size_t next_ = 0;
};

/// What built-in functions need from the interpreter.
struct environment {
  heap& memory;
  std::chrono::sys_seconds now;
  /// Calls a filter or test by name, for map and select.
  std::function<value(const std::string&, const value&, arguments&)> filter;
  std::function<bool(const std::string&, const value&, arguments&)> test;
};

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
value apply_filter(environment& e, const std::string& name, const value& input, arguments& args);
bool apply_test(environment& e, const std::string& name, const value& input, arguments& args);

/// The methods of texts, dicts and lists that a template may call. Those that would change a value
/// are known but not callable.
enum class method_state : uint8_t { absent, callable, forbidden };
method_state find_method(const value& self, std::string_view name);
value call_method(heap& h, const value& self, const std::string& name, arguments& args);
/// The same of markup: texts that go into it are escaped, those that come out are markup again.
value call_markup(heap& h, const text& x, const std::string& name, arguments& args);

/// `x.name` and `x[key]`, undefined where there is no such thing.
value get_attribute(heap& h, const value& x, const std::string& name);
value get_item(heap& h, const value& x, const value& key);
value get_slice(heap& h, const value& x, const value& first, const value& last, const value& step);

/// raise_exception, strftime_now, namespace, range, dict, cycler, joiner.
bool is_global(std::string_view name);
value call_global(environment& e, const std::string& name, arguments& args);

/// Arithmetic. `op` is one of + - * / // % **.
value arithmetic(heap& h, const std::string& op, const value& a, const value& b);

/// `format % values` of texts; `named` are those of %(name)s, null where there are none.
text percent_text(heap& h, const text& format, const std::vector<value>& values,
                  const dict_object* named = nullptr);
/// `format.format(...)` of texts.
text format_text(heap& h, const text& format, arguments& args);

} // namespace lamella::model::jinja
