#include "model/jinja/parser.hpp"

#include "model/jinja/builtins.hpp"
#include "model/jinja/data.hpp"

#include <utility>

namespace lamella::model::jinja {
namespace {

constexpr size_t source_bytes_max = 1 << 20;

/// Statements, the upper half of the parser.
class statement_parser : expression_parser {
public:
  using expression_parser::expression_parser;

  const node* whole_template() {
    const auto* root = body({});
    if (current().kind != token_kind::end) fail("unexpected end of a block");
    if (!unknown_.empty())
      throw chat_template_error{chat_template_error::kind::syntax, unknown_.front().first,
                                unknown_.front().second};
    return root;
  }

private:
  bool at_any(const std::vector<std::string_view>& words) const {
    for (const auto word : words)
      if (at_word(word)) return true;
    return false;
  }

  void end_of_tag() {
    if (current().kind != token_kind::block_end)
      fail("expected %} but found '" + current().text + "'");
    next();
  }

  /// Statements up to a tag that starts with one of `ends`; that word is then the current token.
  const node* body(const std::vector<std::string_view>& ends) {
    const level nested{*this};
    auto& block = make(node_kind::block);
    while (true) {
      switch (current().kind) {
      case token_kind::data: {
        auto& x = make(node_kind::data);
        x.text = current().text;
        block.items.push_back(&x);
        next();
        break;
      }
      case token_kind::variable_begin: {
        next();
        auto& x = make(node_kind::output);
        x.items.push_back(expression_list(true, false));
        if (current().kind != token_kind::variable_end)
          fail("expected }} but found '" + current().text + "'");
        next();
        block.items.push_back(&x);
        break;
      }
      case token_kind::block_begin:
        next();
        if (at_any(ends)) return &block;
        if (const auto* x = statement()) block.items.push_back(x);
        break;
      default:
        if (!ends.empty())
          fail("the template ends where {% " + std::string{ends.back()} + " %} is missing");
        return &block;
      }
    }
  }

  const node* statement() {
    if (current().kind != token_kind::name) fail("a tag must begin with a word");
    const std::string word = current().text;
    const auto with = [&](auto parse) {
      next();
      return parse();
    };
    if (word == "if") return with([&] { return branch(); });
    if (word == "for") return with([&] { return loop(); });
    if (word == "set") return with([&] { return assignment(); });
    if (word == "macro") return with([&] { return macro(); });
    if (word == "call") return with([&] { return call_block(); });
    if (word == "filter") return with([&] { return filter_block(); });
    if (word == "with") return with([&] { return with_block(); });
    if (word == "generation") return with([&] { return generation(); });
    if (word == "break") return with([&] { return jump(node_kind::break_loop, "break"); });
    if (word == "continue") return with([&] { return jump(node_kind::continue_loop, "continue"); });
    if (word.starts_with("end") || word == "else" || word == "elif")
      fail("{% " + word + " %} has nothing to end here");
    fail("the tag '" + word + "' is not part of the language");
  }

  const node* branch() {
    auto& x = make(node_kind::branch);
    ++guarded_;
    while (true) {
      x.items.push_back(expression_list(false, false));
      end_of_tag();
      x.items.push_back(body({"elif", "else", "endif"}));
      if (take_word("elif")) continue;
      if (take_word("else")) {
        end_of_tag();
        x.items.push_back(body({"endif"}));
      }
      next();
      end_of_tag();
      --guarded_;
      return &x;
    }
  }

  const node* loop() {
    auto& x = make(node_kind::loop);
    const auto* each = target(false, "in");
    if (!take_word("in")) fail("expected 'in' but found '" + current().text + "'");
    const auto* of = expression_list(false, false, "recursive");
    const node* condition = take_word("if") ? expression() : nullptr;
    x.whole = take_word("recursive") ? 1 : 0;
    end_of_tag();
    ++loops_;
    const auto* inside = body({"else", "endfor"});
    --loops_;
    const node* other = nullptr;
    if (take_word("else")) {
      end_of_tag();
      other = body({"endfor"});
    }
    next();
    end_of_tag();
    x.items = {each, of, condition, inside, other};
    return &x;
  }

  const node* assignment() {
    const uint32_t line = current().line;
    const auto* to = target(true);
    if (take_symbol("=")) {
      auto& x = make(node_kind::assign);
      x.line = line;
      x.items = {to, expression_list(true, false)};
      end_of_tag();
      return &x;
    }
    auto& x = make(node_kind::assign_block);
    x.line = line;
    const auto* filters = filters_behind(nullptr);
    end_of_tag();
    const auto* inside = body({"endset"});
    next();
    end_of_tag();
    x.items = {to, filters, inside};
    return &x;
  }

  /// `(a, b=1)`: parameters and defaults of a macro or caller.
  std::vector<const node*> signature(node& of) {
    std::vector<const node*> defaults;
    expect_symbol("(");
    while (!at_symbol(")")) {
      if (!of.words.empty()) {
        expect_symbol(",");
        if (at_symbol(")")) break;
      }
      of.words.push_back(expect_name("a parameter"));
      if (take_symbol("="))
        defaults.push_back(expression());
      else if (!defaults.empty())
        fail("a parameter without a default follows one with a default");
    }
    next();
    return defaults;
  }

  /// The body of a macro starts with no loop around it.
  void macro_body(node& of, std::string_view end, const std::vector<const node*>& defaults) {
    const int loops = std::exchange(loops_, 0);
    const auto rest = std::exchange(rest_read_, 0);
    of.items.push_back(body({end}));
    of.whole = rest_read_;
    rest_read_ = rest;
    loops_ = loops;
    next();
    end_of_tag();
    of.items.insert(of.items.end(), defaults.begin(), defaults.end());
  }

  const node* macro() {
    auto& x = make(node_kind::macro);
    x.text = expect_name("the name of a macro");
    const auto defaults = signature(x);
    end_of_tag();
    macro_body(x, "endmacro", defaults);
    return &x;
  }

  const node* call_block() {
    auto& x = make(node_kind::call_block);
    auto& caller = make(node_kind::macro);
    caller.text = "caller";
    std::vector<const node*> defaults;
    if (at_symbol("(")) defaults = signature(caller);
    const auto* call = expression();
    if (call->kind != node_kind::call) fail("{% call %} needs a call, such as {% call name() %}");
    end_of_tag();
    macro_body(caller, "endcall", defaults);
    x.items = {call, &caller};
    return &x;
  }

  const node* filter_block() {
    auto& x = make(node_kind::filter_block);
    // The first filter has no bar before it.
    token bar;
    bar.kind = token_kind::symbol;
    bar.text = "|";
    bar.line = current().line;
    tokens_[at_ - 1] = bar;
    --at_;
    const auto* filters = filters_behind(nullptr);
    end_of_tag();
    const auto* inside = body({"endfilter"});
    next();
    end_of_tag();
    x.items = {filters, inside};
    return &x;
  }

  const node* with_block() {
    auto& x = make(node_kind::with);
    while (current().kind != token_kind::block_end) {
      if (!x.items.empty()) expect_symbol(",");
      x.items.push_back(target(false));
      expect_symbol("=");
      x.items.push_back(expression());
    }
    end_of_tag();
    x.items.push_back(body({"endwith"}));
    next();
    end_of_tag();
    return &x;
  }

  /// Marks what the assistant says, for training; when rendering it is its body, whose variables
  /// stay in it.
  const node* generation() {
    end_of_tag();
    auto& x = make(node_kind::with);
    x.items.push_back(body({"endgeneration"}));
    next();
    end_of_tag();
    return &x;
  }

  const node* jump(node_kind kind, const char* word) {
    if (loops_ == 0) fail(std::string{word} + " is not inside a loop");
    const auto* x = &make(kind);
    end_of_tag();
    return x;
  }

  int loops_ = 0;
};

} // namespace

tree parse(std::string_view source) {
  if (source.size() > source_bytes_max)
    throw chat_template_error{chat_template_error::kind::syntax, 1,
                              "the template is longer than 1 MiB"};
  tree made;
  made.root = statement_parser{tokenize(source), made}.whole_template();
  return made;
}

} // namespace lamella::model::jinja
