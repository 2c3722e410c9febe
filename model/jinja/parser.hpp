/// Tokens to a syntax tree.
#pragma once

#include "model/jinja/ast.hpp"
#include "model/jinja/lexer.hpp"
#include "model/jinja/stack.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lamella::model::jinja {

/// Parses a template of at most 1 MiB with at most 100 levels of nesting. Names of filters and
/// tests are checked here, except inside conditions, where a template may guard what it uses.
/// Throws chat_template_error (syntax) with the line.
tree parse(std::string_view source);

/// Expressions, the lower half of the parser.
class expression_parser {
public:
  expression_parser(std::vector<token> tokens, tree& into)
      : tokens_{std::move(tokens)}, into_{into} {}

protected:
  /// Counts nesting; each recursive rule holds one.
  struct level {
    explicit level(expression_parser& p);
    ~level() { --parser.depth_; }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    expression_parser& parser;
  };

  [[noreturn]] void fail(const std::string& message) const;
  const token& current() const { return tokens_[at_]; }
  const token& ahead(size_t count) const {
    return tokens_[at_ + count < tokens_.size() ? at_ + count : tokens_.size() - 1];
  }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool at_symbol(std::string_view text) const {
    return current().kind == token_kind::symbol && current().text == text;
  }
  bool at_word(std::string_view text) const {
    return current().kind == token_kind::name && current().text == text;
  }
  bool take_symbol(std::string_view text);
  bool take_word(std::string_view text);
  void expect_symbol(std::string_view text);
  std::string expect_name(const char* what);
  node& make(node_kind kind);

  /// One expression; with `conditional` false an `if` after it is left alone (it filters a loop).
  const node* expression(bool conditional = true);
  /// One expression, or a tuple when commas follow; `stop` is a word that ends it.
  const node* expression_list(bool conditional, bool in_brackets, std::string_view stop = {});
  /// What may be assigned to: names, tuples of names, and with `attributes` namespace attributes.
  const node* target(bool attributes, std::string_view stop = {});
  /// `| filter | filter` behind `input`, which is null for blocks.
  const node* filters_behind(const node* input);
  void arguments(node& call);

  std::vector<token> tokens_;
  tree& into_;
  size_t at_ = 0;
  int depth_ = 0;
  stack_room room_;
  int guarded_ = 0;       ///< inside of so many conditions
  int64_t rest_read_ = 0; ///< of varargs and kwargs, by the macro that is being read
  /// Filters and tests that do not exist, unless a condition that follows guards them.
  std::vector<std::pair<uint32_t, std::string>> unknown_;

private:
  const node* logical_or();
  const node* logical_and();
  const node* logical_not();
  const node* comparison();
  const node* sum();
  const node* concatenation();
  const node* product();
  const node* power();
  const node* unary(bool with_filter = true);
  const node* primary();
  const node* postfix(const node* of);
  const node* filters_and_tests(const node* of);
  const node* filter(const node* input);
  const node* test(const node* input);
  const node* subscript(const node* of);
  const node* index();
  const node* list_literal();
  const node* dict_literal();
};

} // namespace lamella::model::jinja
