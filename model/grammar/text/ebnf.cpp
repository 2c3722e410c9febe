// EBNF as xgrammar and llama.cpp take it: name ::= alternatives.
#include "model/grammar/text/text_cursor.hpp"

namespace lamella::model {

namespace {

using kind = grammar_part::kind;

class ebnf_reader {
public:
  explicit ebnf_reader(std::string_view source) : at_{source} {}

  grammar_rules read() {
    grammar_rules made;
    made.start = "root";
    for (blanks(); !at_.ends(); blanks()) {
      grammar_rule rule;
      rule.at = at_.at;
      rule.name = at_.name(name_marks);
      if (rule.name.empty()) at_.fail("the name of a rule is missing");
      blanks();
      if (!at_.take("::=")) at_.fail("::= is missing behind the name of a rule");
      rule.body = choice(0);
      made.rules.push_back(std::move(rule));
    }
    return made;
  }

private:
  static constexpr std::string_view name_marks = "-.";

  void blanks() {
    for (; !at_.ends(); ++at_.at) {
      if (at_.peek() == '#')
        while (!at_.ends() && at_.peek() != '\n') ++at_.at;
      else if (at_.peek() != ' ' && at_.peek() != '\t' && at_.peek() != '\n' && at_.peek() != '\r')
        return;
      if (at_.ends()) return;
    }
  }

  grammar_part choice(uint32_t depth) {
    if (depth > text_cursor::depth_max) at_.fail("groups are nested too deeply");
    grammar_part x{kind::choice, at_.at};
    do x.inner.push_back(sequence(depth));
    while (at_.take("|"));
    return x;
  }

  grammar_part sequence(uint32_t depth) {
    blanks();
    grammar_part x{kind::sequence, at_.at};
    for (blanks(); !at_.ends() && at_.peek() != '|' && at_.peek() != ')'; blanks()) {
      if (begins_rule()) break;
      auto one = atom(depth);
      uint32_t min = 0, max = 0;
      if (at_.quantifier(min, max)) {
        one = at_.repeated(std::move(one), min, max);
        at_.refuse_quantifier();
      }
      x.inner.push_back(std::move(one));
    }
    return x;
  }

  /// A name with ::= behind it is the next rule.
  bool begins_rule() {
    const auto begin = at_.at;
    const bool named = !at_.name(name_marks).empty();
    blanks();
    const bool begins = named && at_.rest().starts_with("::=");
    at_.at = begin;
    return begins;
  }

  grammar_part atom(uint32_t depth) {
    const auto begin = at_.at;
    if (at_.take("(=")) {
      at_.at = begin;
      at_.fail("looking ahead, (= ...), is not supported");
    }
    if (at_.take("(")) {
      auto inner = choice(depth + 1);
      blanks();
      if (!at_.take(")")) at_.fail("a ( is not closed");
      return inner;
    }
    if (at_.take("\"")) {
      grammar_part x{kind::text, begin};
      x.text = at_.quoted('"');
      return x;
    }
    grammar_part x{kind::characters, begin};
    if (at_.take("[")) {
      x.set = at_.characters();
      return x;
    }
    if (at_.take(".")) {
      x.set = code_points::all();
      return x;
    }
    x.what = kind::reference;
    x.text = at_.name(name_marks);
    if (x.text.empty())
      at_.fail("this is none of \"text\", [characters], ., (group) and the name of a rule");
    if (at_.peek() == '(') at_.fail("macros, such as " + x.text + "(...), are not supported");
    return x;
  }

  text_cursor at_;
};

} // namespace

grammar_rules read_ebnf(std::string_view source) { return ebnf_reader{source}.read(); }

} // namespace lamella::model
