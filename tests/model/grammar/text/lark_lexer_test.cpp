// What Lark 1.3.1 reads (parser='lalr', lexer='contextual') and does not: its verdicts, recorded.
#include "model/grammar/ambiguity.hpp"
#include "tests/model/grammar/text/grammar_rows.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace lamella;
using model::grammar;
using tests::check;

TEST_CASE("Lark's terminals: keywords and names") {
  check({"start: stmt+\n"
         "stmt: \"if\" NAME \";\" | NAME \"=\" NAME \";\"\n"
         "NAME: /[a-z]+/\n"
         "%ignore \" \"\n",
         {"if x;", "iffy=x;", "if iffy;", "if if;", "x=if;", "if x;if y;", "i=f;"},
         {"ifx;", "iffy;", "if=x;", "if;", "if x"}});
}

TEST_CASE("Lark's terminals: numbers") {
  check({"start: value (\",\" value)*\n"
         "value: INT | FLOAT | HEX | INT \".\" NAME\n"
         "INT: /[0-9]+/\n"
         "FLOAT: /[0-9]+\\.[0-9]+/\n"
         "HEX: /0x[0-9a-f]+/\n"
         "NAME: /[a-z]+/\n",
         {"1", "1.5", "0x1f", "12,3.25,0xa", "0", "0.0"},
         {"1.", "1.5.2", "0x", "1 2", "0xg"}});
}

TEST_CASE("Lark's terminals: operators") {
  check({"start: NAME op NAME \";\"\n"
         "op: \"=\" | \"==\" | \"===\" | \"<\" | \"<=\" | \"<<\" | \"=\" \"!\"\n"
         "NAME: /[a-z]/\n"
         "%ignore \" \"\n",
         {"a=b;", "a==b;", "a === b;", "a<=b;", "a<<b;", "a=!b;", "a = ! b;"},
         {"a= =b;", "a====b;", "a<  =b;", "a<<<b;", "a=<b;"}});
}

TEST_CASE("Lark's terminals: comments and strings") {
  check({"start: item+\n"
         "item: STRING \";\" | NAME \";\"\n"
         "STRING: /\"(\\\\.|[^\"\\\\\\n])*\"/\n"
         "NAME: /[a-z]+/\n"
         "COMMENT: \"/*\" /(.|\\n)*?/ \"*/\"\n"
         "LINE: /#[^\\n]*/\n"
         "%ignore COMMENT\n"
         "%ignore LINE\n"
         "%ignore /[ \\n]+/\n",
         {"\"a\\\"b\";", "\"/* no comment */\";", "/* a; */ b;", "/* * / **/ a /* b */ ;",
          "a # \"b;\n;", "\"#\";", "/**/a;", "a;/***/"},
         {"\"a\";b", "\"a\nb\";", "/* a;", "a # ;", "/* a */ */ b;", "\"a\\\";", "a /* b *;"}});
}

TEST_CASE("Lark's terminals: equal texts") {
  check({"start: (a | b | c)+\n"
         "a: \"xy\" \"1\"\n"
         "b: W \"2\"\n"
         "c: A \"3\"\n"
         "W: /[w-z]+/\n"
         "A: /xz?/\n",
         {"xy1", "ww2", "x2", "xyx2", "xy1xy1", "zz2xy1"},
         {"xy2", "x3", "xz3", "xy3"}});
}

TEST_CASE("Lark's terminals: any case") {
  check({"start: \"select\"i NAME \";\" | NAME \"=\" NAME \";\"\n"
         "NAME: /[a-zA-Z]+/\n"
         "%ignore \" \"\n",
         {"select a;", "SELECT a;", "SeLeCt selected;", "selected=a;", "a=select;"},
         {"selecta;", "select=a;", "SELECT=a;"}});
}

TEST_CASE("Lark's terminals: characters of many bytes") {
  check({"start: (A | B)+ \"!\"\n"
         "A: /\303\251+/\n"
         "B: /\303\250[a-z]*/\n",
         {"\303\251!", "\303\251\303\251!", "\303\251\303\250a!", "\303\250\303\251\303\250b!"},
         {"!", "\303\251a!", "\303\251\303\252!"}});
}

TEST_CASE("Lark's terminals: terminals of terminals") {
  check({"start: (NUM | WORD)+\n"
         "DIGIT: \"0\"..\"9\"\n"
         "SIGN: \"+\" | \"-\"\n"
         "EXP: (\"e\" | \"E\") SIGN? DIGIT~1..2\n"
         "NUM: SIGN? DIGIT+ (\".\" DIGIT*)? EXP?\n"
         "WORD: (\"a\"..\"d\")~2..3\n"
         "%ignore \" \"\n",
         {"1", "-1.5e10", "1e5ab", "+7.ab", "1.e-7", "abcdab", "ab1", "1.2"},
         {"a", "1e", "e5", "abcd", "1..2"}});
}

TEST_CASE("Lark's terminals: ignored text and terminals that begin alike") {
  check({"start: line+\n"
         "line: KEY \"=\" VALUE _NL | \"[\" KEY \"]\" _NL\n"
         "KEY: /[a-z]+/\n"
         "VALUE: /[^\\n#]+/\n"
         "_NL: /(\\n *)+/\n"
         "%ignore /#[^\\n]*/\n"
         "%ignore / +/\n",
         {"a=b\n", "a = b c\n", "[a]\n a=b # x\n", "a=1#2\n \n"},
         {"a=\n", "a=b", "[a b]\n", "a b=c\n"}});
}

TEST_CASE("Lark's terminals: imports") {
  check({"start: pair (\",\" pair)*\n"
         "pair: CNAME \":\" (ESCAPED_STRING | SIGNED_NUMBER | \"null\" | CNAME)\n"
         "%import common.CNAME\n"
         "%import common.ESCAPED_STRING\n"
         "%import common.SIGNED_NUMBER\n"
         "%import common.WS\n"
         "%ignore WS\n",
         {"a: \"x\\\"y\"", "a:-1.5e3 , b : null", "a:nullx", "null:null", "a_1:+.5"},
         {"a:", "1:a", "a:\"x", "a:1.5.2", "a:--1", "a b:1"}});
}

TEST_CASE("a terminal that went on is not read as a shorter one") {
  // Lark's lexers go back to the last place where a terminal could end.
  check({"start: (INT | FLOAT | \".\")+\nINT: /[0-9]+/\nFLOAT: /[0-9]+\\.[0-9]+/\n",
         {"1", "1.5", ".1", "1.5."},
         {"1.", "1..2"}});
}

TEST_CASE("a lazy repeat is as short as an expression finds it") {
  check({"start: (A | \"c\" | \"x\")+\nA: \"a\" /.*?/ \"c\"\n",
         {"abcc", "acx", "abaac"},
         {"abx", "aba"}});
  check({"start: A B\nA: /<.*?>/\nB: /.+/\n", {"<a>b>", "<>>"}, {"<a>", "<a"}});
  // Without one the longest counts.
  check({"start: A B\nA: /<[^b]*>/\nB: /b.*/\n", {"<a>b>", "<a>>b"}, {"<a>", "<ab"}});
}

TEST_CASE("terminals that may be empty need not be there") {
  check({"start: A B \"c\"\nA: /a*/\nB: /b?/\n%ignore \" \"\n",
         {"c", "aac", "bc", "a b c", "abc"},
         {"", "a", "bac", "bbc"}});
}

TEST_CASE("EBNF has no lexer") {
  check({"root ::= \"if\" name | name \"=\"\nname ::= [a-z]+\n", {"ifx", "if=", "iffy="}, {"if"}});
}

TEST_CASE("text that no lexer reads may stand beside terminals and behind them") {
  const auto build = [](grammar& g, grammar::node_id next) {
    const auto behind = g.text("ab!", next);
    return g.choice(
        {g.text("{ab}", next),
         model::grammar_of_text(g, "start: \"{\" (NAME | \"ac\") \"}\"\nNAME: /a+/", behind)});
  };
  auto states = tests::states_of(build);
  for (const auto* text : {"{ab}", "{aa}ab!", "{ac}ab!"})
    CHECK_MESSAGE(tests::takes(states, text), text);
  for (const auto* text : {"{ab}ab!", "{aa}", "{ac}", "{aa}ab"})
    CHECK_MESSAGE(!tests::takes(states, text), text);
}

TEST_CASE("no text leads to a terminal that is never left") {
  const auto found = [](const std::string& text) {
    grammar g;
    g.begin(0, model::grammar_of_text(g, text, g.end()));
    return model::find_endless(
        std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes()), 8);
  };
  const std::string name = "\nNAME: /[a-z]+/\n";
  CHECK_THROWS_AS(found("start: NAME NAME" + name), model::grammar_error);
  CHECK_THROWS_AS(found("start: a a\na: NAME" + name), model::grammar_error);
  CHECK(found("start: NAME NAME" + name + "%ignore \" \"\n").all.empty());
  CHECK(found("start: NAME /.{100}/ NAME" + name).all.empty());
  CHECK(found("start: NAME+" + name).all.empty());
  const auto endless = [&](const std::string& text, const std::string& begins) {
    auto states = tests::states_of_text(text);
    const auto barred = found(text);
    states.bar(*barred.in, barred.all);
    auto at = states.start();
    for (const char c : begins) at = states.step(at, static_cast<uint8_t>(c));
    return at == model::grammar_states::dead;
  };
  const auto two = "start: \"1\" NAME NAME | \"2\"" + name;
  CHECK(endless(two, "1"));
  CHECK(!endless(two, "2"));
  // A comment ends with its line, which may not end everywhere.
  const std::string lines = "start: (KEY \"=\" KEY LINE)+\nKEY: /[a-z]+/\nLINE: /\\n+/\n"
                            "%ignore /#[^\\n]*/\n%ignore \" \"\n";
  CHECK(endless(lines, "#"));
  CHECK(endless(lines, "a #"));
  CHECK(endless(lines, "a= #"));
  CHECK(!endless(lines, "a=b #"));
}

TEST_CASE("a grammar that is too ambiguous before any text is refused") {
  std::string source = "start: A0 \"x\"\n";
  for (int i = 0; i < 20; ++i) {
    const auto next = " A" + std::to_string(i + 1);
    source += "A" + std::to_string(i) + ":" + next + next + "\n";
  }
  source += "A" + std::to_string(20) + ": \"a\"?\n";
  grammar g;
  g.begin(0, model::grammar_of_text(g, source, g.end()));
  CHECK_THROWS_AS(model::refuse_ambiguous(
                      std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes())),
                  model::grammar_error);
}
