/// The grammar of expressions, one function per level of precedence, weakest first.
#include "model/jinja/data.hpp"
#include "model/jinja/parser.hpp"

#include <algorithm>

namespace lamella::model::jinja {

namespace {
constexpr int expression_depth_max = 100;
}

expression_parser::level::level(expression_parser& p) : parser{p} {
  if (++parser.depth_ > expression_depth_max)
    parser.fail("more than " + std::to_string(expression_depth_max) + " levels");
  if (parser.room_.is_used_up()) parser.fail("the template is nested too deeply");
}

void expression_parser::fail(const std::string& message) const {
  throw chat_template_error{chat_template_error::kind::syntax, current().line, message};
}

bool expression_parser::take_symbol(std::string_view text) {
  if (!at_symbol(text)) return false;
  next();
  return true;
}

bool expression_parser::take_word(std::string_view text) {
  if (!at_word(text)) return false;
  next();
  return true;
}

void expression_parser::expect_symbol(std::string_view text) {
  if (!take_symbol(text))
    fail("expected '" + std::string{text} + "' but found '" + current().text + "'");
}

std::string expression_parser::expect_name(const char* what) {
  if (current().kind != token_kind::name) fail(std::string{"expected "} + what);
  std::string name = current().text;
  next();
  return name;
}

node& expression_parser::make(node_kind kind) {
  auto& x = into_.nodes.emplace_back();
  x.kind = kind;
  x.line = current().line;
  return x;
}

const node* expression_parser::expression(bool conditional) {
  const level nested{*this};
  const size_t unknown = unknown_.size();
  const auto* made = logical_or();
  while (conditional && take_word("if")) {
    unknown_.resize(unknown); // what stands before `if` is only reached when it holds
    ++guarded_;
    auto& x = make(node_kind::conditional);
    const auto* condition = logical_or();
    const auto* other = take_word("else") ? expression() : nullptr;
    x.items = {made, condition, other};
    made = &x;
    --guarded_;
  }
  return made;
}

const node* expression_parser::expression_list(bool conditional, bool in_brackets,
                                               std::string_view stop) {
  std::vector<const node*> members;
  bool is_tuple = false;
  const auto ends = [&] {
    const auto kind = current().kind;
    return kind == token_kind::variable_end || kind == token_kind::block_end || at_symbol(")")
           || (!stop.empty() && at_word(stop));
  };
  while (true) {
    if (!members.empty()) expect_symbol(",");
    if (ends()) break;
    members.push_back(expression(conditional));
    if (!at_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !members.empty()) return members.front();
  if (!is_tuple && !in_brackets) fail("expected an expression");
  auto& x = make(node_kind::tuple);
  x.items = std::move(members);
  return &x;
}

const node* expression_parser::target(bool attributes, std::string_view stop) {
  std::vector<const node*> members;
  bool is_tuple = false;
  while (true) {
    if (!members.empty() && !stop.empty() && at_word(stop)) break;
    if (!members.empty() && (at_symbol("=") || at_symbol(")"))) break;
    if (take_symbol("(")) {
      const level nested{*this};
      members.push_back(target(false));
      expect_symbol(")");
    } else {
      auto& x = make(node_kind::name);
      x.text = expect_name("a name to assign to");
      static constexpr std::string_view reserved[] = {
          "true", "false", "none", "True", "False", "None", "not", "and", "or", "if", "in"};
      if (std::ranges::count(reserved, x.text) != 0) fail("'" + x.text + "' cannot be assigned to");
      if (attributes && take_symbol(".")) {
        auto& attribute = make(node_kind::attribute);
        attribute.items = {&x};
        attribute.text = expect_name("an attribute");
        members.push_back(&attribute);
      } else {
        members.push_back(&x);
      }
    }
    if (!take_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) return members.front();
  auto& x = make(node_kind::tuple);
  x.items = std::move(members);
  return &x;
}

const node* expression_parser::logical_or() {
  const auto* left = logical_and();
  while (take_word("or")) {
    auto& x = make(node_kind::logical_or);
    x.items = {left, logical_and()};
    left = &x;
  }
  return left;
}

const node* expression_parser::logical_and() {
  const auto* left = logical_not();
  while (take_word("and")) {
    auto& x = make(node_kind::logical_and);
    x.items = {left, logical_not()};
    left = &x;
  }
  return left;
}

const node* expression_parser::logical_not() {
  if (!take_word("not")) return comparison();
  const level nested{*this};
  auto& x = make(node_kind::logical_not);
  x.items = {logical_not()};
  return &x;
}

const node* expression_parser::comparison() {
  const auto* first = sum();
  node* made = nullptr;
  while (true) {
    std::string word;
    for (const char* symbol : {"==", "!=", "<", "<=", ">", ">="})
      if (at_symbol(symbol)) word = symbol;
    if (!word.empty()) {
      next();
    } else if (take_word("in")) {
      word = "in";
    } else if (at_word("not") && ahead(1).kind == token_kind::name && ahead(1).text == "in") {
      next();
      next();
      word = "not in";
    } else {
      return made != nullptr ? made : first;
    }
    if (made == nullptr) {
      made = &make(node_kind::compare);
      made->items = {first};
    }
    made->words.push_back(word);
    made->items.push_back(sum());
  }
}

const node* expression_parser::sum() {
  const auto* left = concatenation();
  while (at_symbol("+") || at_symbol("-")) {
    auto& x = make(node_kind::binary);
    x.text = current().text;
    next();
    x.items = {left, concatenation()};
    left = &x;
  }
  return left;
}

const node* expression_parser::concatenation() {
  const auto* first = product();
  if (!at_symbol("~")) return first;
  auto& x = make(node_kind::concat);
  x.items = {first};
  while (take_symbol("~")) x.items.push_back(product());
  return &x;
}

const node* expression_parser::product() {
  const auto* left = power();
  while (at_symbol("*") || at_symbol("/") || at_symbol("//") || at_symbol("%")) {
    auto& x = make(node_kind::binary);
    x.text = current().text;
    next();
    x.items = {left, power()};
    left = &x;
  }
  return left;
}

const node* expression_parser::power() {
  const auto* left = unary();
  while (take_symbol("**")) {
    auto& x = make(node_kind::binary);
    x.text = "**";
    x.items = {left, unary()};
    left = &x;
  }
  return left;
}

const node* expression_parser::unary(bool with_filter) {
  const node* made = nullptr;
  if (at_symbol("-") || at_symbol("+")) {
    const level nested{*this};
    auto& x = make(node_kind::unary);
    x.text = current().text;
    next();
    x.items = {unary(false)};
    made = &x;
  } else {
    made = primary();
  }
  made = postfix(made);
  return with_filter ? filters_and_tests(made) : made;
}

const node* expression_parser::primary() {
  const auto& t = current();
  switch (t.kind) {
  case token_kind::name: {
    const auto& word = t.text;
    const bool truth = word == "true" || word == "True";
    if (truth || word == "false" || word == "False") {
      auto& x = make(node_kind::boolean);
      x.whole = truth ? 1 : 0;
      next();
      return &x;
    }
    auto& x = make(word == "none" || word == "None" ? node_kind::none : node_kind::name);
    x.text = word;
    if (word == "varargs") rest_read_ |= reads_varargs;
    if (word == "kwargs") rest_read_ |= reads_kwargs;
    next();
    return &x;
  }
  case token_kind::string: {
    auto& x = make(node_kind::string);
    for (; current().kind == token_kind::string; next()) x.text += current().text;
    return &x;
  }
  case token_kind::integer: {
    auto& x = make(node_kind::integer);
    x.whole = t.whole;
    next();
    return &x;
  }
  case token_kind::floating: {
    auto& x = make(node_kind::floating);
    x.real = t.real;
    next();
    return &x;
  }
  default:
    break;
  }
  if (take_symbol("(")) {
    const auto* x = expression_list(true, true);
    expect_symbol(")");
    return x;
  }
  if (take_symbol("[")) return list_literal();
  if (take_symbol("{")) return dict_literal();
  fail(t.text.empty() ? "expected an expression" : "unexpected '" + t.text + "'");
}

const node* expression_parser::list_literal() {
  auto& x = make(node_kind::list);
  while (!at_symbol("]")) {
    if (!x.items.empty()) {
      expect_symbol(",");
      if (at_symbol("]")) break;
    }
    x.items.push_back(expression());
  }
  next();
  return &x;
}

const node* expression_parser::dict_literal() {
  auto& x = make(node_kind::dict);
  while (!at_symbol("}")) {
    if (!x.items.empty()) {
      expect_symbol(",");
      if (at_symbol("}")) break;
    }
    x.items.push_back(expression());
    expect_symbol(":");
    x.items.push_back(expression());
  }
  next();
  return &x;
}

} // namespace lamella::model::jinja
