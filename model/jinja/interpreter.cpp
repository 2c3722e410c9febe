/// Statements.
#include "model/jinja/interpreter.hpp"

namespace lamella::model::jinja {

interpreter::interpreter(const tree& program, const template_input& input,
                         const template_limits& limits)
    : program_{program}, heap_{limits},
      environment_{heap_, input.now,
                   [this](const std::string& name, const value& x, arguments& args) {
                     return apply_filter(environment_, name, x, args);
                   },
                   [this](const std::string& name, const value& x, arguments& args) {
                     return apply_test(environment_, name, x, args);
                   }},
      globals_{heap_.make_scope(nullptr)} {
  // The caller's variables first: they hide functions, and cannot replace what a conversation is.
  for (const auto& [name, item] : input.more) globals_->names[name] = from_data(heap_, item);
  globals_->names["messages"] = from_data(heap_, input.messages);
  globals_->names["add_generation_prompt"] = input.add_generation_prompt;
  globals_->names["bos_token"] = heap_.make_text(input.bos_token);
  globals_->names["eos_token"] = heap_.make_text(input.eos_token);
}

text interpreter::run() {
  exec(*program_.root, *heap_.make_scope(globals_));
  return std::move(output_);
}

void interpreter::check_depth() const {
  if (room_.is_used_up()) heap_.fail_limit("the template is nested too deeply");
}

void interpreter::print(const text& x) {
  heap_.charge(x.size());
  out_->append(x);
  if (out_->size() > heap_.limits().output_bytes)
    heap_.fail_limit("the template writes more than " + std::to_string(heap_.limits().output_bytes)
                     + " bytes");
}

text interpreter::captured(const node& body, scope& in, flow& ends) {
  text own;
  auto* before = out_;
  out_ = &own;
  // An error ends the rendering, so out_ need not be put back then.
  ends = exec(body, in);
  out_ = before;
  return own;
}

interpreter::flow interpreter::exec(const node& x, scope& in) {
  check_depth();
  heap_.line = x.line;
  heap_.step();
  switch (x.kind) {
  case node_kind::block:
    return exec_block(x, in);
  case node_kind::data:
    print(text{x.text, true});
    return flow::next;
  case node_kind::output:
    print(to_text(heap_, eval(*x.items[0], in)));
    return flow::next;
  case node_kind::branch:
    return exec_branch(x, in);
  case node_kind::loop:
    return exec_loop(x, in);
  case node_kind::assign:
    assign(*x.items[0], eval(*x.items[1], in), in);
    return flow::next;
  case node_kind::assign_block:
    return exec_assign_block(x, in);
  case node_kind::macro:
    in.names[x.text] = macro_of(x, in);
    return flow::next;
  case node_kind::call_block:
    return exec_call_block(x, in);
  case node_kind::filter_block:
    return exec_filter_block(x, in);
  case node_kind::with:
    return exec_with(x, in);
  case node_kind::break_loop:
    return flow::break_loop;
  case node_kind::continue_loop:
    return flow::continue_loop;
  default:
    heap_.fail("an expression stands where a statement is needed");
  }
}

interpreter::flow interpreter::exec_block(const node& x, scope& in) {
  for (const auto* statement : x.items)
    if (const auto end = exec(*statement, in); end != flow::next) return end;
  return flow::next;
}

interpreter::flow interpreter::exec_branch(const node& x, scope& in) {
  size_t i = 0;
  for (; i + 1 < x.items.size(); i += 2) {
    heap_.step();
    if (truth(eval(*x.items[i], in))) return exec(*x.items[i + 1], in);
  }
  return i < x.items.size() ? exec(*x.items[i], in) : flow::next;
}

interpreter::flow interpreter::exec_loop(const node& x, scope& in) {
  return run_loop(x, in, eval(*x.items[1], in), 0);
}

interpreter::flow interpreter::run_loop(const node& x, scope& in, const value& over,
                                        uint32_t depth) {
  auto* inner = heap_.make_scope(&in);
  auto items = elements(heap_, over);
  if (x.items[2] != nullptr) {
    std::vector<value> kept;
    for (const auto& item : items) {
      inner->names.clear();
      assign(*x.items[0], item, *inner);
      if (truth(eval(*x.items[2], *inner))) kept.push_back(item);
    }
    items = std::move(kept);
  }
  auto* loop = heap_.make_loop();
  loop->items = heap_.make_list(std::move(items));
  loop->depth = depth;
  if (x.whole != 0) {
    auto* again = heap_.make_function();
    again->what = function_object::kind::loop;
    again->macro = &x;
    again->closure = &in;
    again->depth = depth + 1;
    loop->again = again;
  }
  for (; loop->at < loop->items->items.size(); ++loop->at) {
    // Each round starts with nothing of the round before.
    inner->names.clear();
    inner->names["loop"] = static_cast<const loop_object*>(loop);
    assign(*x.items[0], loop->items->items[loop->at], *inner);
    if (exec(*x.items[3], *inner) == flow::break_loop) return flow::next;
  }
  if (loop->items->items.empty() && x.items[4] != nullptr)
    return exec(*x.items[4], *heap_.make_scope(&in));
  return flow::next;
}

interpreter::flow interpreter::exec_assign_block(const node& x, scope& in) {
  flow end = flow::next;
  value made = heap_.make_text(captured(*x.items[2], *heap_.make_scope(&in), end));
  if (x.items[1] != nullptr) {
    const auto* before = block_input_;
    block_input_ = &made;
    made = eval(*x.items[1], in);
    block_input_ = before;
  }
  assign(*x.items[0], made, in);
  return end;
}

interpreter::flow interpreter::exec_filter_block(const node& x, scope& in) {
  flow end = flow::next;
  const value made = heap_.make_text(captured(*x.items[1], *heap_.make_scope(&in), end));
  const auto* before = block_input_;
  block_input_ = &made;
  print(to_text(heap_, eval(*x.items[0], in)));
  block_input_ = before;
  return end;
}

interpreter::flow interpreter::exec_call_block(const node& x, scope& in) {
  const auto& call_node = *x.items[0];
  const auto callee = eval(*call_node.items[0], in);
  auto args = arguments_of(call_node, in, "the macro");
  args.named.emplace_back("caller", macro_of(*x.items[1], in));
  print(to_text(heap_, call(callee, "the macro", args)));
  return flow::next;
}

interpreter::flow interpreter::exec_with(const node& x, scope& in) {
  auto* inner = heap_.make_scope(&in);
  for (size_t i = 0; i + 1 < x.items.size(); i += 2)
    assign(*x.items[i], eval(*x.items[i + 1], in), *inner);
  return exec(*x.items.back(), *inner);
}

void interpreter::assign(const node& target, const value& x, scope& in) {
  if (target.kind == node_kind::name) {
    heap_.charge(64);
    in.names[target.text] = x;
    return;
  }
  if (target.kind == node_kind::attribute) {
    const auto owner = eval_name(*target.items[0], in);
    auto* const* space = std::get_if<namespace_object*>(&owner);
    if (space == nullptr)
      heap_.fail("only attributes of a namespace can be set, and " + target.items[0]->text + " is "
                 + type_name(owner));
    heap_.charge(64);
    (*space)->members[target.text] = x;
    return;
  }
  const auto parts = elements(heap_, x);
  if (parts.size() != target.items.size())
    heap_.fail(std::to_string(parts.size()) + " values cannot be unpacked into "
               + std::to_string(target.items.size()) + " names");
  for (size_t i = 0; i < parts.size(); ++i) assign(*target.items[i], parts[i], in);
}

const function_object* interpreter::macro_of(const node& x, scope& in) {
  auto* made = heap_.make_function();
  made->what = function_object::kind::macro;
  made->name = x.text;
  made->macro = &x;
  made->closure = &in;
  return made;
}

} // namespace lamella::model::jinja
