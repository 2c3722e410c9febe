/// Expressions and calls.
#include "model/jinja/interpreter.hpp"

#include <algorithm>
#include <utility>

namespace lamella::model::jinja {

value interpreter::eval(const node& x, scope& in) {
  check_depth();
  heap_.line = x.line;
  heap_.step();
  switch (x.kind) {
  case node_kind::none:
    return none{};
  case node_kind::boolean:
    return x.whole != 0;
  case node_kind::integer:
    return x.whole;
  case node_kind::floating:
    return x.real;
  case node_kind::string:
    return heap_.make_text(x.text);
  case node_kind::name:
    return eval_name(x, in);
  case node_kind::list:
  case node_kind::tuple:
    return eval_members(x, in);
  case node_kind::dict:
    return eval_dict(x, in);
  case node_kind::attribute:
    return get_attribute(heap_, eval(*x.items[0], in), x.text);
  case node_kind::subscript:
    return eval_subscript(x, in);
  case node_kind::call:
    return eval_call(x, in);
  case node_kind::filter:
    return eval_filter(x, in);
  case node_kind::test:
    return eval_test(x, in);
  case node_kind::unary:
    return eval_unary(x, in);
  case node_kind::binary: {
    const auto left = eval(*x.items[0], in);
    const auto right = eval(*x.items[1], in);
    heap_.line = x.line;
    return arithmetic(heap_, x.text, left, right);
  }
  case node_kind::compare:
    return eval_compare(x, in);
  case node_kind::logical_and:
  case node_kind::logical_or: {
    const auto left = eval(*x.items[0], in);
    return truth(left) == (x.kind == node_kind::logical_and) ? eval(*x.items[1], in) : left;
  }
  case node_kind::logical_not:
    return !truth(eval(*x.items[0], in));
  case node_kind::conditional:
    if (truth(eval(*x.items[1], in))) return eval(*x.items[0], in);
    return x.items[2] != nullptr ? eval(*x.items[2], in) : value{undefined{}};
  case node_kind::concat:
    return eval_concat(x, in);
  default:
    heap_.fail("a slice stands outside of brackets");
  }
}

value interpreter::eval_name(const node& x, scope& in) {
  for (const scope* at = &in; at != nullptr; at = at->parent) {
    heap_.step();
    if (const auto found = at->names.find(x.text); found != at->names.end()) return found->second;
  }
  if (!is_global(x.text)) return undefined{&x.text};
  auto* made = heap_.make_function();
  made->name = x.text;
  return static_cast<const function_object*>(made);
}

value interpreter::eval_members(const node& x, scope& in) {
  std::vector<value> items;
  items.reserve(x.items.size());
  for (const auto* item : x.items) items.push_back(eval(*item, in));
  return heap_.make_list(std::move(items),
                         x.kind == node_kind::tuple ? list_kind::tuple : list_kind::list);
}

value interpreter::eval_dict(const node& x, scope& in) {
  auto* made = heap_.make_dict();
  for (size_t i = 0; i + 1 < x.items.size(); i += 2) {
    const auto key = eval(*x.items[i], in);
    heap_.put(*made, key, eval(*x.items[i + 1], in));
  }
  return static_cast<const dict_object*>(made);
}

value interpreter::eval_subscript(const node& x, scope& in) {
  const auto of = eval(*x.items[0], in);
  const auto& index = *x.items[1];
  if (index.kind != node_kind::slice) return get_item(heap_, of, eval(index, in));
  const auto part = [&](size_t i) {
    return index.items[i] == nullptr ? value{none{}} : eval(*index.items[i], in);
  };
  const auto first = part(0);
  const auto last = part(1);
  return get_slice(heap_, of, first, last, part(2));
}

value interpreter::eval_unary(const node& x, scope& in) {
  const auto operand = eval(*x.items[0], in);
  if (const auto* u = std::get_if<undefined>(&operand)) heap_.fail(undefined_message(*u));
  if (!is_number(operand)) heap_.fail(x.text + " needs a number, not " + type_name(operand));
  return arithmetic(heap_, "*", operand, int64_t{x.text == "-" ? -1 : 1});
}

value interpreter::eval_compare(const node& x, scope& in) {
  auto left = eval(*x.items[0], in);
  for (size_t i = 0; i < x.words.size(); ++i) {
    const auto right = eval(*x.items[i + 1], in);
    const auto& word = x.words[i];
    bool holds = false;
    if (word == "==" || word == "!=")
      holds = equal(heap_, left, right) == (word == "==");
    else if (word == "in" || word == "not in")
      holds = contains(heap_, right, left) == (word == "in");
    else if (const int order = compare(heap_, left, right); word[0] == '<')
      holds = order < 0 || (order == 0 && word.size() == 2);
    else
      holds = order > 0 || (order == 0 && word.size() == 2);
    if (!holds) return false;
    left = right;
  }
  return true;
}

value interpreter::eval_concat(const node& x, scope& in) {
  text out;
  for (const auto* item : x.items) {
    const auto part = to_text(heap_, eval(*item, in));
    heap_.charge(part.size());
    out.append(part);
  }
  return heap_.make_text(std::move(out));
}

value interpreter::eval_filter(const node& x, scope& in) {
  const auto input = x.items[0] == nullptr ? *block_input_ : eval(*x.items[0], in);
  auto args = arguments_of(x, in, x.text);
  heap_.line = x.line;
  return apply_filter(environment_, x.text, input, args);
}

value interpreter::eval_test(const node& x, scope& in) {
  const auto input = eval(*x.items[0], in);
  auto args = arguments_of(x, in, x.text);
  heap_.line = x.line;
  return apply_test(environment_, x.text, input, args);
}

arguments interpreter::arguments_of(const node& x, scope& in, const std::string& name) {
  arguments args{heap_, name};
  for (size_t i = 1; i < x.items.size(); ++i) {
    if (x.items[i]->kind != node_kind::spread) {
      args.positional.push_back(eval(*x.items[i], in));
      continue;
    }
    for (const auto& each : elements(heap_, eval(*x.items[i]->items[0], in)))
      args.positional.push_back(each);
  }
  for (const auto& [parameter, item] : x.named) {
    if (!parameter.empty()) {
      args.named.emplace_back(parameter, eval(*item, in));
      continue;
    }
    const auto more = eval(*item, in);
    const auto* d = std::get_if<const dict_object*>(&more);
    if (d == nullptr) heap_.fail("** needs a dict, not " + std::string{type_name(more)});
    for (const auto& [key, given] : (*d)->members) {
      const auto* s = std::get_if<const text*>(&key);
      if (s == nullptr) heap_.fail("the keys of a dict behind ** must be texts");
      if (std::ranges::count(args.named, (*s)->bytes(), [](const auto& n) { return n.first; }) != 0)
        heap_.fail(name + " gets " + (*s)->bytes() + " twice");
      args.named.emplace_back((*s)->bytes(), given);
    }
  }
  return args;
}

value interpreter::eval_call(const node& x, scope& in) {
  const auto& callee_node = *x.items[0];
  const auto callee = eval(callee_node, in);
  const std::string name = callee_node.text.empty() ? "the function" : callee_node.text;
  auto args = arguments_of(x, in, name);
  heap_.line = x.line;
  return call(callee, name, args);
}

value interpreter::call(const value& callee, const std::string& name, arguments& args) {
  if (const auto* u = std::get_if<undefined>(&callee)) heap_.fail(undefined_message(*u));
  if (const auto* loop = std::get_if<const loop_object*>(&callee)) return call_loop(**loop, args);
  const auto* function = std::get_if<const function_object*>(&callee);
  if (function == nullptr) heap_.fail(name + " is " + type_name(callee) + " and cannot be called");
  switch ((*function)->what) {
  case function_object::kind::global:
    return call_global(environment_, (*function)->name, args);
  case function_object::kind::method:
    if (std::holds_alternative<const loop_object*>((*function)->self))
      return call_loop_method(**function, args);
    return call_method(heap_, (*function)->self, (*function)->name, args);
  case function_object::kind::macro:
    return call_macro(**function, args);
  case function_object::kind::joiner:
    args.done();
    return std::exchange((*function)->called, true) ? (*function)->self : heap_.make_text("");
  case function_object::kind::loop:
    break;
  }
  heap_.fail(name + " cannot be called");
}

value interpreter::call_macro(const function_object& macro, arguments& args) {
  check_depth();
  const auto& x = *macro.macro;
  if (++calls_ > heap_.limits().recursion)
    heap_.fail_limit("macros call each other more than " + std::to_string(heap_.limits().recursion)
                     + " levels deep");
  auto* inner = heap_.make_scope(macro.closure);
  const size_t first_default = x.words.size() - (x.items.size() - 1);
  for (size_t i = 0; i < x.words.size(); ++i) {
    value given = undefined{&x.words[i]};
    if (const auto taken = args.take(x.words[i]))
      given = *taken;
    else if (i >= first_default)
      given = eval(*x.items[1 + i - first_default], *inner);
    heap_.charge(64);
    inner->names[x.words[i]] = given;
  }
  take_rest(x, args, *inner);
  // Only by name: a positional argument left over is one too many.
  for (auto given = args.named.begin(); given != args.named.end(); ++given)
    if (given->first == "caller") {
      inner->names["caller"] = given->second;
      args.named.erase(given);
      break;
    }
  args.done();
  flow end = flow::next;
  const auto* made = heap_.make_text(captured(*x.items[0], *inner, end));
  --calls_;
  return made;
}

/// Arguments beyond the parameters, where the macro reads them.
void interpreter::take_rest(const node& macro, arguments& args, scope& inner) {
  if ((macro.whole & reads_varargs) != 0) {
    std::vector<value> rest;
    while (args.positional.size() > macro.words.size() + rest.size())
      rest.push_back(args.need("varargs"));
    inner.names["varargs"] = heap_.make_list(std::move(rest), list_kind::tuple);
  }
  if ((macro.whole & reads_kwargs) == 0) return;
  auto* rest = heap_.make_dict();
  for (const auto& [name, given] : args.named)
    if (name != "caller") heap_.put(*rest, heap_.make_text(name), given);
  std::erase_if(args.named, [](const auto& n) { return n.first != "caller"; });
  inner.names["kwargs"] = static_cast<const dict_object*>(rest);
}

value interpreter::call_loop(const loop_object& loop, arguments& args) {
  check_depth();
  if (loop.again == nullptr) heap_.fail("the loop is not recursive");
  if (++calls_ > heap_.limits().recursion)
    heap_.fail_limit("a loop calls itself more than " + std::to_string(heap_.limits().recursion)
                     + " levels deep");
  const auto over = args.need("iterable");
  args.done();
  text own;
  auto* before = out_;
  out_ = &own;
  run_loop(*loop.again->macro, *loop.again->closure, over, loop.again->depth);
  out_ = before;
  --calls_;
  return heap_.make_text(std::move(own));
}

value interpreter::call_loop_method(const function_object& method, arguments& args) {
  const auto& loop = *std::get<const loop_object*>(method.self);
  std::vector<value> given;
  while (auto each = args.take("")) given.push_back(*each);
  args.done();
  if (method.name == "cycle") {
    if (given.empty()) heap_.fail("loop.cycle needs values");
    return given[loop.at % given.size()];
  }
  const auto* now = heap_.make_list(std::move(given), list_kind::tuple);
  const bool changed = loop.changed == nullptr || !equal(heap_, value{loop.changed}, value{now});
  if (changed) loop.changed = now;
  return changed;
}

} // namespace lamella::model::jinja
