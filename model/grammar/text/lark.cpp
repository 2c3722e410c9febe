// The notation of Lark as llguidance takes it: name: alternatives, up to the end of the line.
#include "model/grammar/text/text_cursor.hpp"

#include "base/utf8.hpp"

#include <cctype>
#include <map>
#include <optional>

namespace lamella::model {

namespace {

using kind = grammar_part::kind;

/// Terminals of Lark's library `common`, as regular expressions.
const std::map<std::string, const char*, std::less<>> common_terminals{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER",
     "[+-]?([0-9]+([eE][+-]?[0-9]+)?|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[a-zA-Z]"},
    {"WORD", "[a-zA-Z]+"},
    {"CNAME", "[a-zA-Z_][a-zA-Z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"}};

class lark_reader {
public:
  explicit lark_reader(std::string_view source) : at_{source} {}

  grammar_rules read() {
    made_.start = "start";
    made_.has_lexer = true;
    for (lines(); !at_.ends(); lines()) {
      if (at_.peek() == '%')
        directive();
      else
        rule();
      blanks();
      if (!at_.ends() && at_.peek() != '\n')
        at_.fail("this stands behind what belongs to the line");
    }
    return std::move(made_);
  }

private:
  /// Within a line, and its comment.
  void blanks() {
    while (at_.peek() == ' ' || at_.peek() == '\t' || at_.peek() == '\r') ++at_.at;
    if (at_.peek() == '#' || at_.rest().starts_with("//"))
      while (!at_.ends() && at_.peek() != '\n') ++at_.at;
  }
  void lines() {
    for (blanks(); at_.peek() == '\n'; blanks()) ++at_.at;
  }
  /// Also over the ends of lines, where what comes then goes on with this one.
  bool goes_on(std::string_view with) {
    const auto begin = at_.at;
    lines();
    if (at_.take(with)) return true;
    at_.at = begin;
    return false;
  }

  void rule() {
    const auto begin = at_.at;
    while (at_.peek() == '?' || at_.peek() == '!') ++at_.at; // of the trees that Lark makes
    grammar_rule x;
    x.at = at_.at;
    x.name = at_.name();
    if (x.name.empty()) at_.fail("the name of a rule is missing");
    x.is_terminal = std::isupper(static_cast<unsigned char>(
                        x.name.front() == '_' && x.name.size() > 1 ? x.name[1] : x.name.front()))
                    != 0;
    blanks();
    if (at_.peek() == '.') at_.fail("priorities are not supported: leave out . and the number");
    if (at_.peek() == '{') at_.fail("templates of rules are not supported: write the rule out");
    if (at_.peek() == '[') at_.fail("attributes of rules are not supported");
    if (!at_.take(":")) {
      at_.at = begin;
      at_.fail("this is no rule, NAME: ..., and no directive");
    }
    x.body = choice(0);
    made_.rules.push_back(std::move(x));
  }

  grammar_part choice(uint32_t depth) {
    if (depth > text_cursor::depth_max) at_.fail("groups are nested too deeply");
    grammar_part x{kind::choice, at_.at};
    goes_on("|"); // before the first one
    do x.inner.push_back(sequence(depth));
    while (goes_on("|"));
    return x;
  }

  grammar_part sequence(uint32_t depth) {
    grammar_part x{kind::sequence, at_.at};
    for (;;) {
      if (depth > 0)
        lines();
      else
        blanks();
      const auto c = at_.peek();
      if (at_.ends() || c == '\n' || c == '|' || c == ')' || c == ']') return x;
      if (at_.take("->")) { // a name for the trees that Lark makes
        blanks();
        if (at_.name().empty()) at_.fail("a name is missing behind ->");
        continue;
      }
      auto one = atom(depth);
      uint32_t min = 0, max = 0;
      if (at_.quantifier(min, max) || tilde(min, max)) {
        one = at_.repeated(std::move(one), min, max);
        at_.refuse_quantifier();
      }
      x.inner.push_back(std::move(one));
    }
  }

  /// ~n or ~m..n.
  bool tilde(uint32_t& min, uint32_t& max) {
    blanks();
    if (!at_.take("~")) return false;
    blanks();
    min = max = at_.count();
    if (at_.take("..")) max = at_.count();
    return true;
  }

  grammar_part atom(uint32_t depth) {
    const auto begin = at_.at;
    const bool optional = at_.peek() == '[';
    if (at_.take("(") || at_.take("[")) {
      const char end = optional ? ']' : ')';
      auto inner = choice(depth + 1);
      lines();
      if (!at_.take({&end, 1})) at_.fail(std::string{"a "} + end + " is missing");
      return optional ? at_.repeated(std::move(inner), 0, 1) : inner;
    }
    if (at_.take("\"")) return text(begin);
    if (at_.peek() == '/') return expression();
    if (at_.peek() == '<')
      at_.fail("special tokens, <...>, are not supported: texts are made of characters");
    if (at_.peek() == '@') at_.fail("other grammars, @..., are not supported");
    if (at_.peek() == '%') at_.fail("a grammar within a rule, such as %json, is not supported");
    grammar_part x{kind::reference, begin};
    x.text = at_.name();
    if (x.text.empty())
      at_.fail("this is none of \"text\", /expression/, (group), [optional] and a name");
    if (at_.peek() == '{' && !std::isdigit(static_cast<unsigned char>(at_.peek(1)))
        && at_.peek(1) != ',' && at_.peek(1) != ' ')
      at_.fail("templates of rules are not supported: write the rule out");
    return x;
  }

  /// Behind its quote; a range where another one follows.
  grammar_part text(size_t begin) {
    grammar_part x{kind::text, begin};
    x.text = at_.quoted('"');
    x.any_case = at_.take("i");
    if (!at_.rest().starts_with("..")) return x;
    at_.take("..");
    if (!at_.take("\"")) at_.fail("a range ends with a character, \"...\"");
    const auto last = at_.quoted('"');
    const auto from = one_character(x.text), to = one_character(last);
    if (!from || !to || *to < *from)
      fail_at_begin(begin, "a range is from one character to a later one");
    grammar_part range{kind::characters, begin};
    range.set.add(*from, *to);
    return range;
  }

  /// The character that is all of a text; nothing where it is empty or longer.
  static std::optional<char32_t> one_character(const std::string& text) {
    if (text.empty()) return {};
    const auto x = decode_utf8(text, 0);
    if (x.bytes != text.size()) return {};
    return x.code_point;
  }

  [[noreturn]] void fail_at_begin(size_t begin, const std::string& why) {
    at_.at = begin;
    at_.fail(why);
  }

  grammar_part expression() {
    grammar_part x{kind::expression, at_.at};
    for (++at_.at; at_.peek() != '/'; ++at_.at) {
      if (at_.ends() || at_.peek() == '\n') fail_at_begin(x.at, "this expression is not closed");
      if (at_.peek() == '\\' && at_.peek(1) == '/') ++at_.at; // a / of its own
      if (at_.peek() == '\\') x.text += at_.peek(), ++at_.at;
      x.text += at_.peek();
    }
    ++at_.at;
    if (std::isalpha(static_cast<unsigned char>(at_.peek())))
      at_.fail(std::string{"the flag "} + at_.peek() + " of an expression is not supported");
    return x;
  }

  void directive() {
    const auto begin = at_.at++;
    const auto what = at_.name();
    blanks();
    if (what == "ignore") {
      made_.ignored.push_back(choice(0));
    } else if (what == "import") {
      import();
    } else {
      fail_at_begin(begin, "%" + what + " is not supported; %ignore and %import common.NAME are");
    }
  }

  void import() {
    if (!at_.take("common")) at_.fail("only common can be imported from");
    blanks();
    if (at_.take(".")) {
      import_one();
      return;
    }
    if (!at_.take("(")) at_.fail(". or ( is missing");
    do {
      blanks();
      import_one();
      blanks();
    } while (at_.take(","));
    if (!at_.take(")")) at_.fail("a ) is missing");
  }

  void import_one() {
    grammar_rule x;
    x.at = at_.at;
    x.name = at_.name();
    x.is_terminal = true;
    const auto known = common_terminals.find(x.name);
    if (known == common_terminals.end())
      fail_at_begin(x.at, "common has no " + x.name + " that is known here");
    x.body = {kind::expression, x.at};
    x.body.text = std::string{"(?:"} + known->second + ")";
    blanks();
    if (at_.take("->")) {
      blanks();
      x.name = at_.name();
    }
    made_.rules.push_back(std::move(x));
  }

  text_cursor at_;
  grammar_rules made_;
};

} // namespace

grammar_rules read_lark(std::string_view source) { return lark_reader{source}.read(); }

} // namespace lamella::model
