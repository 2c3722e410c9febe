/// The syntax tree of a template. Nodes live in one pool, so that a deep tree is freed without
/// recursion.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace lamella::model::jinja {

enum class node_kind : uint8_t {
  // Expressions. `items` are their operands, in the order written here.
  none,
  boolean,     ///< `whole` is 0 or 1
  integer,     ///< `whole`
  floating,    ///< `real`
  string,      ///< `text`
  name,        ///< `text`
  list,        ///< members
  tuple,       ///< members
  dict,        ///< key, value, key, value, ...
  attribute,   ///< object; `text` is the name
  subscript,   ///< object, index
  slice,       ///< first, last, step; each may be null
  call,        ///< callee, arguments; `named`, where the empty name is `**operand`
  filter,      ///< input (null where a block feeds it), arguments; `text`, `named`
  test,        ///< input, arguments; `text`, `named`
  unary,       ///< operand; `text` is + or -
  binary,      ///< left, right; `text` is the operator
  compare,     ///< operands; `words` are the operators between them
  logical_and, ///< left, right
  logical_or,  ///< left, right
  logical_not, ///< operand
  conditional, ///< value, condition, other (may be null)
  concat,      ///< operands of ~
  spread,      ///< `*operand` among the arguments of a call
  // Statements. Bodies are `block` nodes.
  data,   ///< `text`
  output, ///< expression
  block,  ///< statements
  branch, ///< condition, body, condition, body, ..., other (only when the count is odd)
  loop,   ///< target, list, condition (may be null), body, other (may be null); `whole`: recursive
  assign, ///< target, expression
  assign_block, ///< target, filters (may be null), body
  macro,        ///< body, then defaults of the last parameters; `text` is the name, `words` the
                ///< parameters, `whole` which of varargs and kwargs it reads
  call_block,   ///< call, macro node (the caller)
  filter_block, ///< filters, body
  with,         ///< target, expression, target, expression, ..., body
  break_loop,
  continue_loop
};

constexpr int64_t reads_varargs = 1, reads_kwargs = 2;

struct node {
  node_kind kind = node_kind::none;
  uint32_t line = 0;
  int64_t whole = 0;
  double real = 0;
  std::string text;
  std::vector<const node*> items;
  std::vector<std::pair<std::string, const node*>> named;
  std::vector<std::string> words;
};

struct tree {
  std::deque<node> nodes;
  const node* root = nullptr;
};

} // namespace lamella::model::jinja
