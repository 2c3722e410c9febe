#include "tests/model/grammar/text/grammar_rows.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace lamella;
using tests::check;

namespace {

std::string why_not(const std::string& text) {
  try {
    tests::states_of_text(text);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}

} // namespace

TEST_CASE("EBNF is read with its marks") {
  check({"# sums\nroot ::= term (\"+\" term)* # more\nterm ::= [0-9]+ | \"(\" root \")\"\n",
         {"1", "12+3", "(1+(2+3))+4"},
         {"", "+", "1+", "(1", "1)", "a"}});
  check({"root ::= \"a\"{2} b{1,2} c{2,} d{,1}\n  | \"\"\nb ::= \"b\"\nc ::= \"c\"\nd ::= \"d\"",
         {"", "aabcc", "aabbccccd"},
         {"aab", "aabc", "aabbbcc", "aabccdd"}});
  check({"root ::= [^a-c\\]\\n] . \"\\x41\\u00e9\\\"\\\\\" x-y?\nx-y ::= [\\-+]",
         {"dzA\xC3\xA9\"\\",
          "\xE2\x82\xAC\xC3\xA9"
          "A\xC3\xA9\"\\+",
          "zzA\xC3\xA9\"\\-"},
         {"azA\xC3\xA9\"\\", "]zA\xC3\xA9\"\\", "zA\xC3\xA9\"\\"}});
  check({"root ::= ((\"a\" | \"b\"?)+ \"c\")*", {"", "c", "aabc", "ccabac"}, {"a", "ca", "d"}});
}

TEST_CASE("Lark is read with its terminals, what is ignored, and imports") {
  check({"// sums\n%import common.INT\n%import common (WS_INLINE, CNAME -> NAME)\n"
         "%ignore WS_INLINE\n?start: sum\nsum: sum \"+\" product -> add\n   | product\n"
         "product: INT | NAME | \"(\" sum \")\"\n",
         {"1", " 1 + 2", "a+(b + 34 )  ", "(((x)))"},
         {"", "+", "1 +", "1 2", "(1", "1\n"}});
  check({"start: KEY \"=\" VALUE [\";\"]\nKEY: /[a-z]+/ DIGIT~1..2\nDIGIT: \"0\"..\"9\"\n"
         "VALUE: \"yes\"i | /a\\/b/\n",
         {"a1=yes", "zz12=YeS;", "q0=a/b"},
         {"a=yes", "a123=yes", "a1 =yes", "a1=no", "a1=a\\/b"}});
  check({"!start: (\"a\"\n  | \"b\")~2 \"c\"{1,2}\n", {"aac", "bacc"}, {"ac", "aaccc", "aa"}});
  check({"%import common.ESCAPED_STRING\n%import common.SIGNED_NUMBER\n%import common.WS\n"
         "%ignore WS\nstart: value\nvalue: ESCAPED_STRING | SIGNED_NUMBER | list\n"
         "list: \"[\" [value (\",\" value)*] \"]\"\n",
         {"\"a\\\"b\"", " -1.5e3", "[ ]", "[1, [\"x y\" , []]]\n"},
         {"", "[1,]", "\"a", "1.5.2", "[1 2]"}});
}

TEST_CASE("rules that begin with themselves become repetitions") {
  check({"root ::= root \"+\" t | t\nt ::= t \"*\" [0-9] | [0-9]",
         {"1", "1+2*3+4"},
         {"", "+1", "1+"}});
  check({"root ::= root | \"a\" | root \"b\"", {"a", "abb"}, {"", "b", "aa"}});
}

TEST_CASE("what cannot be served is refused with its place and what to do") {
  struct refusal {
    const char *text, *why;
  };
  for (const auto& x :
       {refusal{"root ::= \"a\n", "line 1, column 10: this text is not closed"},
        {"root ::= a\n", "line 1, column 10: there is no rule a"},
        {"a ::= \"a\"\n", "there is no rule root"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is defined twice"},
        {"root ::= (\"a\"", "line 1, column 14: a ( is not closed"},
        {"root ::= a\na ::= b \"x\"\nb ::= a?", "line 3, column 7: rule a begins with itself"},
        {"root ::= \"x\"? root", "rule root begins with itself"},
        {"root ::= \"a\" (= \"b\")", "line 1, column 14: looking ahead"},
        {"root ::= [b-a]", "a range of a class is reversed"},
        {"start: \"a\"..\"\"", "a range is from one character to a later one"},
        {"start: \"\"..\"a\"", "a range is from one character to a later one"},
        {"start: \"b\"..\"a\"", "a range is from one character to a later one"},
        {"root ::= \"a\"{3,2}", "the counts of a repeat are out of order"},
        {"root ::= \"a\"{99999}", "a count is above 10000"},
        {"root ::= \"\\q\"", "\\q is not supported"},
        {"root ::= \"a\" )", "the name of a rule is missing"},
        {"root ::= f(\"a\")", "macros, such as f(...), are not supported"},
        {"start: \"a\n", "line 1, column 8: this text is not closed"},
        {"start.2: \"a\"\n", "line 1, column 6: priorities are not supported"},
        {"start: A\nA: /a|b/ \"c\"", "line 2, column 4: Lark takes the alternatives"},
        {"start: a{b}\na{x}: x", "line 1, column 9: templates"},
        {"start: <|end|>", "special tokens"},
        {"start: %json {}", "a grammar within a rule"},
        {"start: @other", "other grammars"},
        {"start[stop=\"x\"]: \"a\"", "attributes of rules"},
        {"start: /(?=a)/", "line 1, column 8: in the expression: look-around"},
        {"start: /a/s", "the flag s of an expression is not supported"},
        {"%import python.NAME\nstart: NAME", "only common can be imported"},
        {"%import common.NOTHING\nstart: \"a\"", "line 1, column 16: common has no NOTHING"},
        {"%declare A\nstart: A", "%declare is not supported"},
        {"words", "this is no rule"},
        {"", "there is no rule start"}})
    CHECK_MESSAGE(why_not(x.text).find(x.why) != std::string::npos,
                  std::string{x.text} << ": " << why_not(x.text));
  std::string deep = "root ::= ";
  for (int i = 0; i < 100; ++i) deep += "(";
  CHECK(why_not(deep).find("nested too deeply") != std::string::npos);
  CHECK(why_not("root ::= root \"a\"").find("no text") != std::string::npos);
  CHECK(why_not(std::string(100'000, ' ')).find("at most 65536") != std::string::npos);
  std::string many = "root ::= \"a\"\n";
  for (int i = 0; i < 2'000; ++i) many += "r" + std::to_string(i) + " ::= \"a\"\n";
  CHECK(why_not(many).find("more than 2000 rules") != std::string::npos);
}
