#include "model/jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <utility>

namespace lamella::model::jinja {

namespace {
std::partial_ordering compare_numbers(const value& a, const value& b) {
  const auto x = as_whole(a), y = as_whole(b);
  if (x && y) return *x <=> *y;
  const auto *m = as_big(a), *n = as_big(b);
  if (m != nullptr && n != nullptr) return m->compare(*n) <=> 0;
  if (m != nullptr && y) return m->is_negative() ? -1 <=> 0 : 1 <=> 0;
  if (n != nullptr && x) return n->is_negative() ? 1 <=> 0 : -1 <=> 0;
  return as_real(a) <=> as_real(b);
}
} // namespace

void heap::fail(const std::string& message) const {
  throw chat_template_error{chat_template_error::kind::runtime, line, message};
}

void heap::fail_limit(const std::string& message) const {
  throw chat_template_error{chat_template_error::kind::limit, line, message};
}

void heap::charge(size_t bytes) {
  step(bytes / 64);
  bytes_ += bytes;
  if (bytes_ > limits_.memory_bytes) fail_limit("the template takes too much memory");
}

const text* heap::make_text(text x) {
  charge(sizeof(text) + x.size() + x.runs().size() * sizeof(text::run));
  return &texts_.emplace_back(std::move(x));
}

const list_object* heap::make_list(std::vector<value> items, list_kind kind) {
  charge(sizeof(list_object) + items.size() * sizeof(value));
  return &lists_.emplace_back(list_object{std::move(items), kind});
}

cycler_object* heap::make_cycler(std::vector<value> items) {
  charge(sizeof(cycler_object) + items.size() * sizeof(value));
  return &cyclers_.emplace_back(cycler_object{std::move(items)});
}

const big_integer* heap::make_big(big_integer x) {
  charge(sizeof(big_integer) + x.digits.size());
  return &bigs_.emplace_back(std::move(x));
}

dict_object* heap::make_dict() {
  charge(sizeof(dict_object));
  return &dicts_.emplace_back();
}

namespace_object* heap::make_namespace() {
  charge(sizeof(namespace_object));
  return &namespaces_.emplace_back();
}

function_object* heap::make_function() {
  charge(sizeof(function_object));
  return &functions_.emplace_back();
}

loop_object* heap::make_loop() {
  charge(sizeof(loop_object));
  return &loops_.emplace_back();
}

scope* heap::make_scope(scope* parent) {
  charge(sizeof(scope));
  auto& made = scopes_.emplace_back();
  made.parent = parent;
  return &made;
}

void heap::put(dict_object& to, const value& key, const value& item) {
  auto name = key_of(*this, key);
  charge(2 * sizeof(value) + name.size() + 64);
  if (const auto found = to.index.find(name); found != to.index.end()) {
    to.members[found->second].second = item;
    return;
  }
  to.index.emplace(std::move(name), to.members.size());
  to.members.emplace_back(key, item);
}

value from_data(heap& h, const template_data& x, int depth) {
  if (depth > value_depth_max) h.fail_limit("the request is nested too deeply");
  if (const auto* b = std::get_if<bool>(&x.value)) return *b;
  if (const auto* n = std::get_if<int64_t>(&x.value)) return *n;
  if (const auto* d = std::get_if<double>(&x.value)) return *d;
  if (const auto* big = std::get_if<big_integer>(&x.value)) return h.make_big(*big);
  if (const auto* s = std::get_if<std::string>(&x.value)) return h.make_text(*s, false);
  if (const auto* items = std::get_if<template_data::list>(&x.value)) {
    std::vector<value> made;
    made.reserve(items->size());
    for (const auto& item : *items) made.push_back(from_data(h, item, depth + 1));
    return h.make_list(std::move(made));
  }
  if (const auto* members = std::get_if<template_data::object>(&x.value)) {
    auto* made = h.make_dict();
    for (const auto& [key, item] : *members)
      h.put(*made, h.make_text(key, false), from_data(h, item, depth + 1));
    return made;
  }
  return none{};
}

bool truth(const value& x) {
  if (const auto* b = std::get_if<bool>(&x)) return *b;
  if (const auto* n = std::get_if<int64_t>(&x)) return *n != 0;
  if (const auto* d = std::get_if<double>(&x)) return *d != 0;
  if (const auto* s = std::get_if<const text*>(&x)) return !(*s)->empty();
  if (const auto* l = std::get_if<const list_object*>(&x))
    return (*l)->is_lazy() || !(*l)->items.empty();
  if (const auto* d = std::get_if<const dict_object*>(&x)) return !(*d)->members.empty();
  return !std::holds_alternative<undefined>(x) && !std::holds_alternative<none>(x);
}

const char* type_name(const value& x) {
  static constexpr const char* names[] = {
      "undefined", "none",        "a boolean",  "an integer", "a float",  "a text",    "a list",
      "a dict",    "a namespace", "a function", "a loop",     "a cycler", "an integer"};
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && !(*l)->has_places())
    return (*l)->is_lazy() ? "a generator" : "a view of a dict";
  return names[x.index()];
}

bool is_number(const value& x) {
  return std::holds_alternative<bool>(x) || std::holds_alternative<int64_t>(x)
         || std::holds_alternative<double>(x) || as_big(x) != nullptr;
}

double as_real(const value& x) {
  if (const auto* big = as_big(x)) return big->nearest();
  if (const auto* d = std::get_if<double>(&x)) return *d;
  return static_cast<double>(as_whole(x).value_or(0));
}

std::optional<int64_t> as_whole(const value& x) {
  if (const auto* b = std::get_if<bool>(&x)) return *b ? 1 : 0;
  if (const auto* n = std::get_if<int64_t>(&x)) return *n;
  return std::nullopt;
}

const big_integer* as_big(const value& x) {
  const auto* big = std::get_if<const big_integer*>(&x);
  return big != nullptr ? *big : nullptr;
}

std::string key_of(const heap& h, const value& x, int depth) {
  if (depth > value_depth_max) h.fail_limit("values are nested too deeply");
  if (const auto* s = std::get_if<const text*>(&x)) return "s" + (*s)->bytes();
  if (const auto* d = std::get_if<double>(&x)) {
    const bool is_whole = std::trunc(*d) == *d && std::abs(*d) < 9e15;
    return is_whole ? "n" + std::to_string(static_cast<int64_t>(*d)) : "n" + real_text(*d);
  }
  if (const auto n = as_whole(x)) return "n" + std::to_string(*n);
  if (const auto* big = as_big(x)) return "n" + big->digits;
  if (std::holds_alternative<none>(x)) return "-";
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && (*l)->is_tuple()) {
    std::string key = "t";
    for (const auto& item : (*l)->items) {
      const auto part = key_of(h, item, depth + 1);
      key += std::to_string(part.size()) + ":" + part;
    }
    return key;
  }
  h.fail(std::string{type_name(x)} + " cannot be a key");
}

bool can_be_key(const value& x, int depth) {
  if (const auto* l = std::get_if<const list_object*>(&x))
    return (*l)->is_tuple() && depth <= value_depth_max
           && std::ranges::all_of((*l)->items,
                                  [&](const value& item) { return can_be_key(item, depth + 1); });
  return is_number(x) || std::holds_alternative<const text*>(x) || std::holds_alternative<none>(x);
}

const value* find(const heap& h, const dict_object& in, const value& key) {
  const auto found = in.index.find(key_of(h, key));
  return found == in.index.end() ? nullptr : &in.members[found->second].second;
}

const value* find_text(const dict_object& in, std::string_view key) {
  const auto found = in.index.find("s" + std::string{key});
  return found == in.index.end() ? nullptr : &in.members[found->second].second;
}

bool equal(heap& h, const value& a, const value& b, int depth) {
  h.step();
  if (depth > value_depth_max) h.fail_limit("values are nested too deeply");
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
  if (a.index() != b.index()) return false;
  if (const auto* s = std::get_if<const text*>(&a)) {
    h.step((*s)->size() / 64);
    return (*s)->bytes() == std::get<const text*>(b)->bytes();
  }
  if (const auto* l = std::get_if<const list_object*>(&a)) {
    const auto& x = **l;
    const auto& y = *std::get<const list_object*>(b);
    if (x.is_lazy() || y.is_lazy()) return &x == &y;
    if (x.is_tuple() != y.is_tuple() || x.items.size() != y.items.size()) return false;
    for (size_t i = 0; i < x.items.size(); ++i)
      if (!equal(h, x.items[i], y.items[i], depth + 1)) return false;
    return true;
  }
  if (const auto* d = std::get_if<const dict_object*>(&a)) {
    const auto& x = **d;
    const auto& y = *std::get<const dict_object*>(b);
    if (x.members.size() != y.members.size()) return false;
    for (const auto& [key, item] : x.members) {
      const auto* other = find(h, y, key);
      if (other == nullptr || !equal(h, item, *other, depth + 1)) return false;
    }
    return true;
  }
  if (const auto* n = std::get_if<namespace_object*>(&a))
    return *n == std::get<namespace_object*>(b);
  if (const auto* f = std::get_if<const function_object*>(&a))
    return *f == std::get<const function_object*>(b);
  if (const auto* l = std::get_if<const loop_object*>(&a))
    return *l == std::get<const loop_object*>(b);
  if (const auto* c = std::get_if<cycler_object*>(&a)) return *c == std::get<cycler_object*>(b);
  return true; // undefined or none on both sides
}

int compare(heap& h, const value& a, const value& b, int depth) {
  h.step();
  if (depth > value_depth_max) h.fail_limit("values are nested too deeply");
  if (is_number(a) && is_number(b)) {
    const auto order = compare_numbers(a, b);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const auto* s = std::get_if<const text*>(&a);
  const auto* t = std::get_if<const text*>(&b);
  if (s != nullptr && t != nullptr) {
    h.step(std::min((*s)->size(), (*t)->size()) / 64);
    return (*s)->bytes().compare((*t)->bytes()); // UTF-8 sorts as its code points do
  }
  const auto* l = std::get_if<const list_object*>(&a);
  const auto* m = std::get_if<const list_object*>(&b);
  if (l != nullptr && m != nullptr && (*l)->has_places() && (*m)->has_places()
      && (*l)->is_tuple() == (*m)->is_tuple()) {
    const auto& x = (*l)->items;
    const auto& y = (*m)->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(h, x[i], y[i], depth + 1)) return compare(h, x[i], y[i], depth + 1);
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  for (const auto* side : {&a, &b})
    if (const auto* u = std::get_if<undefined>(side)) h.fail(undefined_message(*u));
  h.fail(std::string{type_name(a)} + " and " + type_name(b) + " have no order");
}

bool contains(heap& h, const value& in, const value& x) {
  if (const auto* s = std::get_if<const text*>(&in)) {
    const auto* part = std::get_if<const text*>(&x);
    if (part == nullptr) h.fail(std::string{type_name(x)} + " cannot be part of a text");
    h.step((*s)->size() / 64);
    return (*s)->bytes().find((*part)->bytes()) != std::string::npos;
  }
  if (const auto* d = std::get_if<const dict_object*>(&in)) return find(h, **d, x) != nullptr;
  if (std::holds_alternative<const list_object*>(in)) {
    for (const auto& item : elements(h, in))
      if (equal(h, item, x)) return true;
    return false;
  }
  if (std::holds_alternative<undefined>(in)) return false;
  h.fail(std::string{type_name(in)} + " contains nothing");
}

std::vector<value> elements(heap& h, const value& x) {
  std::vector<value> made;
  if (const auto* l = std::get_if<const list_object*>(&x)) {
    made = (*l)->is_lazy() ? std::exchange((*l)->items, {}) : (*l)->items;
  } else if (const auto* d = std::get_if<const dict_object*>(&x)) {
    for (const auto& member : (*d)->members) made.push_back(member.first);
  } else if (const auto* s = std::get_if<const text*>(&x)) {
    const auto positions = character_positions((*s)->bytes());
    for (size_t i = 0; i + 1 < positions.size(); ++i)
      made.push_back(h.make_text((*s)->part(positions[i], positions[i + 1])));
  } else if (!std::holds_alternative<undefined>(x)) {
    h.fail(std::string{type_name(x)} + " cannot be looped over");
  }
  h.step(made.size() / 8);
  return made;
}

std::string undefined_message(const undefined& x) {
  return x.what == nullptr ? "the value is undefined" : *x.what + " is undefined";
}

} // namespace lamella::model::jinja
