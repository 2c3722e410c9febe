/// Runs a syntax tree over the data of one request.
#pragma once

#include "model/jinja/builtins.hpp"
#include "model/jinja/stack.hpp"

namespace lamella::model::jinja {

/// One rendering. Not reusable: the limits count from its construction.
class interpreter {
public:
  interpreter(const tree& program, const template_input& input, const template_limits& limits);
  interpreter(const interpreter&) = delete;
  interpreter& operator=(const interpreter&) = delete;

  /// The rendered text with its marks. Throws chat_template_error.
  text run();

private:
  enum class flow : uint8_t { next, break_loop, continue_loop };

  void check_depth() const; ///< asked by every nested evaluation
  flow exec(const node& x, scope& in);
  flow exec_block(const node& x, scope& in);
  flow exec_branch(const node& x, scope& in);
  flow exec_loop(const node& x, scope& in);
  flow run_loop(const node& x, scope& in, const value& over, uint32_t depth);
  flow exec_assign_block(const node& x, scope& in);
  flow exec_call_block(const node& x, scope& in);
  flow exec_filter_block(const node& x, scope& in);
  flow exec_with(const node& x, scope& in);
  void assign(const node& target, const value& x, scope& in);
  void print(const text& x);

  /// Runs a body into a text of its own.
  text captured(const node& body, scope& in, flow& ends);

  value eval(const node& x, scope& in);
  value eval_name(const node& x, scope& in);
  value eval_members(const node& x, scope& in);
  value eval_dict(const node& x, scope& in);
  value eval_subscript(const node& x, scope& in);
  value eval_unary(const node& x, scope& in);
  value eval_compare(const node& x, scope& in);
  value eval_concat(const node& x, scope& in);
  value eval_filter(const node& x, scope& in);
  value eval_test(const node& x, scope& in);
  value eval_call(const node& x, scope& in);
  arguments arguments_of(const node& x, scope& in, const std::string& name);
  value call(const value& callee, const std::string& name, arguments& args);
  value call_macro(const function_object& macro, arguments& args);
  void take_rest(const node& macro, arguments& args, scope& inner);
  value call_loop(const loop_object& loop, arguments& args);
  value call_loop_method(const function_object& method, arguments& args);
  const function_object* macro_of(const node& x, scope& in);

  const tree& program_;
  heap heap_;
  environment environment_;
  scope* globals_;
  text output_;
  text* out_ = &output_;
  const value* block_input_ = nullptr; ///< what the filters of a block start from
  stack_room room_;
  uint32_t calls_ = 0;
};

} // namespace lamella::model::jinja
