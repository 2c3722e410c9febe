/// Tests: what may stand behind `is`.
#include "model/jinja/builtins.hpp"

#include <algorithm>
#include <map>

namespace lamella::model::jinja {
namespace {

using test_function = bool (*)(environment&, const value&, arguments&);

int64_t whole(environment& e, const value& x) {
  if (const auto n = as_whole(x)) return *n;
  if (as_big(x) != nullptr) e.memory.fail("an integer is too large");
  e.memory.fail(std::string{"the test needs an integer, not "} + type_name(x));
}

bool is_list(const value& x) { return std::holds_alternative<const list_object*>(x); }
bool is_text(const value& x) { return std::holds_alternative<const text*>(x); }
bool is_dict(const value& x) { return std::holds_alternative<const dict_object*>(x); }

bool same(environment& e, const value& x, const value& y) {
  if (x.index() != y.index()) return false;
  if (const auto* l = std::get_if<const list_object*>(&x))
    return *l == std::get<const list_object*>(y);
  if (const auto* d = std::get_if<const dict_object*>(&x))
    return *d == std::get<const dict_object*>(y);
  return equal(e.memory, x, y);
}

/// Some cased characters, all of this case.
bool in_case(environment& e, const value& x, const char* method) {
  arguments no{e.memory, method};
  return truth(call_method(e.memory, e.memory.make_text(to_text(e.memory, x)), method, no));
}

using test_table = std::map<std::string, test_function, std::less<>>;

/// What a value is.
const test_table& tests_of_types() {
  static const test_table all{
      {"defined", [](environment&, const value& x,
                     arguments&) { return !std::holds_alternative<undefined>(x); }},
      {"undefined", [](environment&, const value& x,
                       arguments&) { return std::holds_alternative<undefined>(x); }},
      {"none",
       [](environment&, const value& x, arguments&) { return std::holds_alternative<none>(x); }},
      {"string", [](environment&, const value& x, arguments&) { return is_text(x); }},
      {"mapping", [](environment&, const value& x, arguments&) { return is_dict(x); }},
      {"number", [](environment&, const value& x, arguments&) { return is_number(x); }},
      {"integer",
       [](environment&, const value& x, arguments&) {
         return std::holds_alternative<int64_t>(x) || as_big(x) != nullptr;
       }},
      {"float",
       [](environment&, const value& x, arguments&) { return std::holds_alternative<double>(x); }},
      {"boolean",
       [](environment&, const value& x, arguments&) { return std::holds_alternative<bool>(x); }},
      {"true", [](environment&, const value& x,
                  arguments&) { return std::holds_alternative<bool>(x) && truth(x); }},
      {"false", [](environment&, const value& x,
                   arguments&) { return std::holds_alternative<bool>(x) && !truth(x); }},
      {"iterable",
       [](environment&, const value& x, arguments&) {
         return is_list(x) || is_text(x) || is_dict(x) || std::holds_alternative<undefined>(x);
       }},
      {"sequence",
       [](environment&, const value& x, arguments&) {
         if (is_list(x)) return std::get<const list_object*>(x)->has_places();
         return is_text(x) || is_dict(x) || std::holds_alternative<undefined>(x);
       }},
      {"callable",
       [](environment&, const value& x, arguments&) {
         // An undefined value has a call operator too: one that fails.
         return std::holds_alternative<const function_object*>(x)
                || std::holds_alternative<const loop_object*>(x)
                || std::holds_alternative<undefined>(x);
       }},
      {"escaped", [](environment&, const value& x,
                     arguments&) { return is_text(x) && std::get<const text*>(x)->is_markup(); }},
  };
  return all;
}

/// How a value compares with another.
const test_table& comparisons() {
  static const auto equals = [](environment& e, const value& x, arguments& a) {
    return equal(e.memory, x, a.need("other"));
  };
  static const auto differs = [](environment& e, const value& x, arguments& a) {
    return !equal(e.memory, x, a.need("other"));
  };
  static const auto less = [](environment& e, const value& x, arguments& a) {
    return compare(e.memory, x, a.need("other")) < 0;
  };
  static const auto less_or_equal = [](environment& e, const value& x, arguments& a) {
    return compare(e.memory, x, a.need("other")) <= 0;
  };
  static const auto greater = [](environment& e, const value& x, arguments& a) {
    return compare(e.memory, x, a.need("other")) > 0;
  };
  static const auto greater_or_equal = [](environment& e, const value& x, arguments& a) {
    return compare(e.memory, x, a.need("other")) >= 0;
  };
  static const test_table all{
      {"sameas",
       [](environment& e, const value& x, arguments& a) { return same(e, x, a.need("other")); }},
      {"eq", equals},
      {"equalto", equals},
      {"==", equals},
      {"ne", differs},
      {"!=", differs},
      {"lt", less},
      {"lessthan", less},
      {"<", less},
      {"le", less_or_equal},
      {"<=", less_or_equal},
      {"gt", greater},
      {"greaterthan", greater},
      {">", greater},
      {"ge", greater_or_equal},
      {">=", greater_or_equal},
  };
  return all;
}

/// What is true of a number, a text or a name.
const test_table& tests_of_contents() {
  static const test_table all{
      {"in", [](environment& e, const value& x,
                arguments& a) { return contains(e.memory, a.need("seq"), x); }},
      {"odd", [](environment& e, const value& x, arguments&) { return whole(e, x) % 2 != 0; }},
      {"even", [](environment& e, const value& x, arguments&) { return whole(e, x) % 2 == 0; }},
      {"divisibleby",
       [](environment& e, const value& x, arguments& a) {
         const auto by = a.need_whole("num");
         if (by == 0) e.memory.fail("division by zero");
         return by == -1 || whole(e, x) % by == 0;
       }},
      {"lower",
       [](environment& e, const value& x, arguments&) { return in_case(e, x, "islower"); }},
      {"upper",
       [](environment& e, const value& x, arguments&) { return in_case(e, x, "isupper"); }},
      {"filter", [](environment& e, const value& x,
                    arguments&) { return is_filter(to_text(e.memory, x).bytes()); }},
      {"test", [](environment& e, const value& x,
                  arguments&) { return is_test(to_text(e.memory, x).bytes()); }},
  };
  return all;
}

/// Null where there is no test of that name.
const test_function* find_test(std::string_view name) {
  for (const auto* table : {&tests_of_types(), &comparisons(), &tests_of_contents()})
    if (const auto found = table->find(name); found != table->end()) return &found->second;
  return nullptr;
}

} // namespace

bool is_test(std::string_view name) { return find_test(name) != nullptr; }

bool apply_test(environment& e, const std::string& name, const value& input, arguments& args) {
  const auto* test = find_test(name);
  if (test == nullptr) e.memory.fail("there is no test named '" + name + "'");
  e.memory.step();
  const bool result = (*test)(e, input, args);
  args.done();
  return result;
}

} // namespace lamella::model::jinja
