/// What may follow a value: members, calls, filters and tests.
#include "model/jinja/builtins.hpp"
#include "model/jinja/parser.hpp"

namespace lamella::model::jinja {

const node* expression_parser::postfix(const node* of) {
  while (true) {
    if (at_symbol(".") || at_symbol("[")) {
      of = subscript(of);
    } else if (at_symbol("(")) {
      auto& x = make(node_kind::call);
      x.items = {of};
      arguments(x);
      of = &x;
    } else {
      return of;
    }
  }
}

const node* expression_parser::subscript(const node* of) {
  if (take_symbol(".")) {
    if (current().kind == token_kind::integer) {
      auto& x = make(node_kind::subscript);
      auto& number = make(node_kind::integer);
      number.whole = current().whole;
      next();
      x.items = {of, &number};
      return &x;
    }
    auto& x = make(node_kind::attribute);
    x.items = {of};
    x.text = expect_name("an attribute");
    return &x;
  }
  next();
  auto& x = make(node_kind::subscript);
  if (take_symbol("]")) { // x[] is x[()]
    x.items = {of, &make(node_kind::tuple)};
    return &x;
  }
  const auto* at = index();
  if (at_symbol(",")) {
    auto& several = make(node_kind::tuple);
    several.items = {at};
    while (take_symbol(",")) several.items.push_back(index());
    at = &several;
  }
  expect_symbol("]");
  x.items = {of, at};
  return &x;
}

const node* expression_parser::index() {
  const auto part = [&]() -> const node* {
    return at_symbol(":") || at_symbol("]") || at_symbol(",") ? nullptr : expression();
  };
  const auto* first = part();
  if (!at_symbol(":")) {
    if (first == nullptr) fail("expected an index");
    return first;
  }
  auto& x = make(node_kind::slice);
  next();
  const auto* last = part();
  const node* step = take_symbol(":") ? part() : nullptr;
  x.items = {first, last, step};
  return &x;
}

void expression_parser::arguments(node& call) {
  expect_symbol("(");
  bool first = true;
  bool spread = false;
  while (!at_symbol(")")) {
    if (!first) {
      expect_symbol(",");
      if (at_symbol(")")) break;
    }
    first = false;
    const bool mapped = !call.named.empty() && call.named.back().first.empty();
    if (mapped) fail("an argument follows ** in a call");
    if (take_symbol("**")) {
      call.named.emplace_back("", expression());
    } else if (at_symbol("*") && !spread) {
      next();
      auto& x = make(node_kind::spread);
      x.items = {expression()};
      call.items.push_back(&x);
      spread = true;
    } else if (current().kind == token_kind::name && ahead(1).kind == token_kind::symbol
               && ahead(1).text == "=") {
      std::string name = current().text;
      next();
      next();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (spread || !call.named.empty()) fail("a positional argument follows a named one or *");
      call.items.push_back(expression());
    }
  }
  next();
}

const node* expression_parser::filters_and_tests(const node* of) {
  while (true) {
    if (at_symbol("|")) {
      of = filter(of);
    } else if (at_word("is")) {
      of = test(of);
    } else if (at_symbol("(")) {
      auto& x = make(node_kind::call);
      x.items = {of};
      arguments(x);
      of = &x;
    } else {
      return of;
    }
  }
}

const node* expression_parser::filters_behind(const node* input) {
  while (at_symbol("|")) input = filter(input);
  return input;
}

const node* expression_parser::filter(const node* input) {
  next();
  auto& x = make(node_kind::filter);
  x.text = expect_name("the name of a filter");
  if (guarded_ == 0 && !is_filter(x.text))
    unknown_.emplace_back(x.line, "there is no filter named '" + x.text + "'");
  x.items = {input};
  if (at_symbol("(")) arguments(x);
  return &x;
}

const node* expression_parser::test(const node* input) {
  next();
  const bool negated = take_word("not");
  auto& x = make(node_kind::test);
  x.text = expect_name("the name of a test");
  if (guarded_ == 0 && !is_test(x.text))
    unknown_.emplace_back(x.line, "there is no test named '" + x.text + "'");
  x.items = {input};
  if (at_symbol("(")) {
    arguments(x);
  } else {
    // One operand may follow without brackets: `x is divisibleby 3`.
    const auto kind = current().kind;
    const bool is_operand =
        (kind == token_kind::name && !at_word("else") && !at_word("or") && !at_word("and"))
        || kind == token_kind::string || kind == token_kind::integer || kind == token_kind::floating
        || at_symbol("[") || at_symbol("{");
    if (is_operand && !at_word("if")) {
      if (at_word("is")) fail("tests cannot follow each other");
      x.items.push_back(postfix(primary()));
    }
  }
  if (!negated) return &x;
  auto& no = make(node_kind::logical_not);
  no.items = {&x};
  return &no;
}

} // namespace lamella::model::jinja
