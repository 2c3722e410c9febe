/// Members, slices and arithmetic.
#include "model/jinja/builtins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lamella::model::jinja {
namespace {

value not_there(heap& h, const value& x, const std::string& what) {
  // The message is only needed when somebody reads from it, but must outlive this call.
  static const std::string unnamed = "a member that is not there";
  if (what.size() > 200) return undefined{&unnamed};
  return undefined{&h.make_text("member '" + what + "' of " + type_name(x))->bytes()};
}

/// Python's range of a slice: start, count and step over `size` elements.
struct slice_range {
  int64_t start;
  int64_t count;
  int64_t step;
};

slice_range range_of(heap& h, int64_t size, const value& first, const value& last,
                     const value& step) {
  const auto part = [&](const value& x, int64_t otherwise) {
    if (std::holds_alternative<none>(x)) return otherwise;
    if (const auto n = as_whole(x)) return *n;
    h.fail(std::string{"a slice needs integers, not "} + type_name(x));
  };
  const int64_t by = part(step, 1);
  if (by == 0) h.fail("the step of a slice is 0");
  const auto clamp = [&](int64_t n, int64_t low, int64_t high) {
    if (n < 0) n = n < -size ? low : n + size;
    return std::clamp(n, low, high);
  };
  const int64_t low = by < 0 ? -1 : 0;
  const int64_t high = by < 0 ? size - 1 : size;
  const int64_t from = std::holds_alternative<none>(first) ? (by < 0 ? high : low)
                                                           : clamp(part(first, 0), low, high);
  const int64_t to =
      std::holds_alternative<none>(last) ? (by < 0 ? low : high) : clamp(part(last, 0), low, high);
  int64_t count = 0;
  // Division, because the step may be as large as an integer can be.
  if (by > 0 && to > from) count = (to - from - 1) / by + 1;
  if (by < 0 && from > to)
    count = by == std::numeric_limits<int64_t>::min() ? 1 : (from - to - 1) / -by + 1;
  return {from, count, by};
}

/// By reference: the result is read after the operation that sets it, whatever the order of
/// arguments.
int64_t checked(heap& h, bool overflow, const int64_t& result) {
  if (overflow) h.fail("an integer is too large");
  return result;
}

int64_t whole_power(heap& h, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    h.step();
    if ((exponent & 1) != 0)
      result = checked(h, __builtin_mul_overflow(result, base, &result), result);
    if (exponent > 1) base = checked(h, __builtin_mul_overflow(base, base, &base), base);
  }
  return result;
}

value whole_arithmetic(heap& h, const std::string& op, int64_t a, int64_t b) {
  int64_t n = 0;
  if (op == "+") return checked(h, __builtin_add_overflow(a, b, &n), n);
  if (op == "-") return checked(h, __builtin_sub_overflow(a, b, &n), n);
  if (op == "*") return checked(h, __builtin_mul_overflow(a, b, &n), n);
  if (op == "**") {
    if (b >= 0) return whole_power(h, a, b);
    if (a == 0) h.fail("0 to a negative power");
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
  if (b == 0) h.fail("division by zero");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (a == std::numeric_limits<int64_t>::min() && b == -1) h.fail("an integer is too large");
  const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); // rounds down
  return op == "//" ? quotient : a - quotient * b;
}

value real_arithmetic(heap& h, const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) h.fail("division by zero");
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

value repeated(heap& h, const value& x, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const auto* s = std::get_if<const text*>(&x);
  const size_t size = s != nullptr ? (*s)->size() : std::get<const list_object*>(x)->items.size();
  if (size != 0 && static_cast<uint64_t>(times) > h.limits().memory_bytes / size)
    h.fail_limit("the template takes too much memory");
  h.charge(size * static_cast<size_t>(times));
  if (s != nullptr) {
    text out;
    for (int64_t i = 0; size != 0 && i < times; ++i) out.append(**s);
    return h.make_text(out.as_markup((*s)->is_markup()));
  }
  const auto& list = *std::get<const list_object*>(x);
  std::vector<value> items;
  for (int64_t i = 0; size != 0 && i < times; ++i)
    items.insert(items.end(), list.items.begin(), list.items.end());
  return h.make_list(std::move(items), list.is_tuple() ? list_kind::tuple : list_kind::list);
}

} // namespace

value get_attribute(heap& h, const value& x, const std::string& name) {
  if (const auto* u = std::get_if<undefined>(&x)) h.fail(undefined_message(*u));
  if (name.starts_with("_")) return not_there(h, x, name); // what begins so is Python's own
  if (const auto* n = std::get_if<namespace_object*>(&x)) {
    const auto found = (*n)->members.find(name);
    return found == (*n)->members.end() ? not_there(h, x, name) : found->second;
  }
  if (const auto* l = std::get_if<const loop_object*>(&x)) {
    const auto& loop = **l;
    const auto size = static_cast<int64_t>(loop.items->items.size());
    const auto at = static_cast<int64_t>(loop.at);
    if (name == "index") return at + 1;
    if (name == "index0") return at;
    if (name == "revindex") return size - at;
    if (name == "revindex0") return size - at - 1;
    if (name == "first") return at == 0;
    if (name == "last") return at + 1 == size;
    if (name == "length") return size;
    if (name == "depth") return int64_t{loop.depth} + 1;
    if (name == "depth0") return int64_t{loop.depth};
    if (name == "previtem" && at > 0) return loop.items->items[loop.at - 1];
    if (name == "nextitem" && at + 1 < size) return loop.items->items[loop.at + 1];
    if (name == "cycle" || name == "changed") {
      auto* method = h.make_function();
      method->what = function_object::kind::method;
      method->name = name;
      method->self = x;
      return static_cast<const function_object*>(method);
    }
  }
  if (const auto* c = std::get_if<cycler_object*>(&x); c != nullptr && name == "current")
    return (*c)->items[(*c)->at];
  if (const auto* l = std::get_if<const list_object*>(&x);
      l != nullptr && (*l)->kind == list_kind::group && (name == "grouper" || name == "list"))
    return (*l)->items[name == "list" ? 1 : 0];
  switch (find_method(x, name)) {
  case method_state::callable: {
    auto* method = h.make_function();
    method->what = function_object::kind::method;
    method->name = name;
    method->self = x;
    return static_cast<const function_object*>(method);
  }
  case method_state::forbidden:
    return not_there(h, x, name);
  case method_state::absent:
    break;
  }
  if (const auto* d = std::get_if<const dict_object*>(&x))
    if (const auto* member = find_text(**d, name)) return *member;
  return not_there(h, x, name);
}

value get_item(heap& h, const value& x, const value& key) {
  if (const auto* u = std::get_if<undefined>(&x)) h.fail(undefined_message(*u));
  const auto* name = std::get_if<const text*>(&key);
  if (const auto* d = std::get_if<const dict_object*>(&x)) {
    // What cannot be a key is simply not there.
    if (can_be_key(key))
      if (const auto* member = find(h, **d, key)) return *member;
  } else if (const auto n = as_whole(key)) {
    if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && (*l)->has_places()) {
      const auto size = static_cast<int64_t>((*l)->items.size());
      if (*n >= -size && *n < size)
        return (*l)->items[static_cast<size_t>(*n < 0 ? *n + size : *n)];
    } else if (const auto* s = std::get_if<const text*>(&x)) {
      h.step((*s)->size() / 64);
      const auto positions = character_positions((*s)->bytes());
      const auto size = static_cast<int64_t>(positions.size()) - 1;
      if (*n >= -size && *n < size) {
        const auto i = static_cast<size_t>(*n < 0 ? *n + size : *n);
        return h.make_text((*s)->part(positions[i], positions[i + 1]).as_markup((*s)->is_markup()));
      }
    }
  }
  if (name != nullptr) return get_attribute(h, x, (*name)->bytes());
  return not_there(h, x, to_text(h, key).bytes());
}

value get_slice(heap& h, const value& x, const value& first, const value& last, const value& step) {
  if (const auto* u = std::get_if<undefined>(&x)) h.fail(undefined_message(*u));
  if (const auto* s = std::get_if<const text*>(&x)) {
    h.step((*s)->size() / 64);
    const auto positions = character_positions((*s)->bytes());
    const auto range = range_of(h, static_cast<int64_t>(positions.size()) - 1, first, last, step);
    text out;
    if (range.step == 1 && range.count > 0) {
      out = (*s)->part(positions[static_cast<size_t>(range.start)],
                       positions[static_cast<size_t>(range.start + range.count)]);
    } else {
      for (int64_t i = 0; i < range.count; ++i) {
        const auto at = static_cast<size_t>(range.start + i * range.step);
        out.append_range(**s, positions[at], positions[at + 1]);
      }
    }
    return h.make_text(out.as_markup((*s)->is_markup()));
  }
  if (const auto* l = std::get_if<const list_object*>(&x)) {
    if (!(*l)->has_places()) h.fail(std::string{type_name(x)} + " has no slices");
    const auto& items = (*l)->items;
    const auto range = range_of(h, static_cast<int64_t>(items.size()), first, last, step);
    std::vector<value> picked;
    for (int64_t i = 0; i < range.count; ++i)
      picked.push_back(items[static_cast<size_t>(range.start + i * range.step)]);
    return h.make_list(std::move(picked), (*l)->is_tuple() ? list_kind::tuple : list_kind::list);
  }
  return not_there(h, x, "slice");
}

value arithmetic(heap& h, const std::string& op, const value& a, const value& b) {
  for (const auto* side : {&a, &b})
    if (const auto* u = std::get_if<undefined>(side)) h.fail(undefined_message(*u));
  if (is_number(a) && is_number(b)) {
    const auto x = as_whole(a);
    const auto y = as_whole(b);
    const bool is_big =
        (as_big(a) != nullptr && (y || as_big(b) != nullptr)) || (as_big(b) != nullptr && x);
    if (is_big && op != "/") h.fail("an integer is too large");
    return x && y ? whole_arithmetic(h, op, *x, *y)
                  : real_arithmetic(h, op, as_real(a), as_real(b));
  }
  const auto* s = std::get_if<const text*>(&a);
  const auto* t = std::get_if<const text*>(&b);
  const auto* l = std::get_if<const list_object*>(&a);
  const auto* m = std::get_if<const list_object*>(&b);
  if (op == "+" && s != nullptr && t != nullptr) {
    h.charge((*s)->size() + (*t)->size());
    const bool is_markup = (*s)->is_markup() || (*t)->is_markup();
    text out = is_markup ? escaped(**s) : **s;
    out.append(is_markup ? escaped(**t) : **t);
    return h.make_text(std::move(out));
  }
  const bool has_places =
      (l == nullptr || (*l)->has_places()) && (m == nullptr || (*m)->has_places());
  if (op == "+" && l != nullptr && m != nullptr && has_places
      && (*l)->is_tuple() == (*m)->is_tuple()) {
    auto items = (*l)->items;
    items.insert(items.end(), (*m)->items.begin(), (*m)->items.end());
    return h.make_list(std::move(items), (*l)->is_tuple() ? list_kind::tuple : list_kind::list);
  }
  if (op == "*" && (s != nullptr || l != nullptr) && has_places && as_whole(b))
    return repeated(h, a, *as_whole(b));
  if (op == "*" && (t != nullptr || m != nullptr) && has_places && as_whole(a))
    return repeated(h, b, *as_whole(a));
  if (op == "%" && s != nullptr) {
    const bool is_tuple = m != nullptr && (*m)->is_tuple();
    const auto* const* d = std::get_if<const dict_object*>(&b);
    return h.make_text(percent_text(h, **s, is_tuple ? (*m)->items : std::vector<value>{b},
                                    d != nullptr ? *d : nullptr));
  }
  h.fail("cannot compute " + std::string{type_name(a)} + " " + op + " " + type_name(b));
}

} // namespace lamella::model::jinja
