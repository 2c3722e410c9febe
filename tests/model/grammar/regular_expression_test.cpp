#include "model/grammar/regular_expression.hpp"

#include "base/utf8.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::regular_expression;
using model::regular_expression_error;
using model::spelling;
using tests::takes;
using match = regular_expression::match;

namespace {

model::grammar_states states_of(std::string_view expression, match what = match::whole,
                                spelling how = spelling::plain) {
  return tests::states_of([&](grammar& g, auto next) {
    return regular_expression::parse(expression).compile(g, what, how, next);
  });
}

struct expectation {
  const char* expression;
  std::vector<std::string> taken, refused;
};

const std::vector<expectation> expectations{
    {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
    {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
    {"a*b+c?", {"b", "aabbc", "bc"}, {"", "a", "ac", "bcc"}},
    {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab", "aba"}},
    {"(ab){2,}", {"abab", "abababababab"}, {"", "ab"}},
    {"a{7}", {"aaaaaaa"}, {"aaaaaa", "aaaaaaaa"}},
    {"a{0,17}b", {"b", "aaaaaaaaaaaaaaaaab"}, {"aaaaaaaaaaaaaaaaaab"}},
    {"[a-cx]", {"a", "b", "c", "x"}, {"d", "", "ab"}},
    {"[^a-c]", {"d", "\xC3\xA9", "\xF0\x9F\x98\x80", "\n"}, {"a", "b", ""}},
    {"[-a]", {"-", "a"}, {"b"}},
    {"[a-]", {"-", "a"}, {"b"}},
    {"[\\]\\\\]", {"]", "\\"}, {"["}},
    {"[\\d-x]", {"1", "-", "x"}, {"y"}},
    {"\\d{3}-\\d{4}", {"555-0123"}, {"555-012", "55a-0123"}},
    {"\\w\\W\\s\\S", {"a  b", "_-\tx"}, {"ab b"}},
    {".", {"a", "\xE2\x82\xAC", "\t"}, {"\n", "\r", "", "ab"}},
    {"\\.\\*\\/\\{", {".*/{"}, {"a*/{"}},
    {"x{", {"x{"}, {"x"}},
    {"x{,a}\\0", {std::string("x{,a}\0", 6)}, {"x"}},
    {"(?:a|b)(?<name>c)", {"ac", "bc"}, {"a", "c"}},
    {"(?P<name>a|b)c", {"ac", "bc"}, {"a", "c"}},
    {"\\_[\\_\\-]\\\xC3\xA9", {"__\xC3\xA9", "_-\xC3\xA9"}, {"\\__\xC3\xA9", "__", "_\\\xC3\xA9"}},
    {"a+?b*?", {"a", "aab"}, {"b"}},
    {"\\u00e9\\x41\\u{1F600}\\uD83D\\uDE00",
     {"\xC3\xA9"
      "A\xF0\x9F\x98\x80\xF0\x9F\x98\x80"},
     {"A"}},
    {"^(yes|no)$", {"yes", "no"}, {"yesno", "xyes"}},
    {"((a*)*)*b", {"b", "aaab"}, {"a"}},
    {"(a?){3,5}", {"", "a", "aaaaa"}, {"aaaaaa"}},
};

} // namespace

TEST_CASE("a regular expression takes whole texts") {
  for (const auto& x : expectations) {
    auto states = states_of(x.expression);
    CAPTURE(x.expression);
    for (const auto& text : x.taken) CHECK_MESSAGE(takes(states, text), text);
    for (const auto& text : x.refused) CHECK_MESSAGE(!takes(states, text), text);
  }
}

TEST_CASE("a pattern may be anywhere in a text unless it is anchored") {
  struct line {
    const char* expression;
    bool inside, at_begin, at_end, alone;
  };
  for (const auto& x :
       {line{"ab", true, true, true, true}, line{"^ab", false, true, false, true},
        line{"ab$", false, false, true, true}, line{"^ab$", false, false, false, true},
        line{"^ab|ab$", false, true, true, true}}) {
    auto states = states_of(x.expression, match::somewhere);
    CAPTURE(x.expression);
    CHECK(takes(states, "xabx") == x.inside);
    CHECK(takes(states, "abx") == x.at_begin);
    CHECK(takes(states, "xab") == x.at_end);
    CHECK(takes(states, "ab") == x.alone);
    CHECK_FALSE(takes(states, "axb"));
  }
}

TEST_CASE("within a JSON string characters are escaped where they must be, and only there") {
  auto states = states_of(".*", match::whole, spelling::json);
  for (const auto* text : {"", "abc", "\\\"", "\\\\", "\\t", "\\u0001", "\xC3\xA9", "/"})
    CHECK_MESSAGE(takes(states, text), text);
  for (const auto* text : {"\"", "\\", "\t", "\\u0041", "\\u0009", "\\/", "\\n"})
    CHECK_MESSAGE(!takes(states, text), text);
  auto quotes = states_of("[\"a-c]", match::whole, spelling::json);
  CHECK(takes(quotes, "\\\""));
  CHECK_FALSE(takes(quotes, "\""));
}

TEST_CASE("bytes that are not UTF-8 are in no text") {
  auto states = states_of("[^x]*");
  for (const auto* text :
       {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"})
    CHECK_FALSE(takes(states, text));
  for (const auto* text : {"\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(takes(states, text));
}

// Every range of characters is cut into sequences of byte ranges: the cut must lose none.
TEST_CASE("a class has its characters and no others, whatever its borders") {
  tests::splitmix random{17};
  for (int round = 0; round < 60; ++round) {
    const char32_t top = round % 3 == 0 ? 0x900 : round % 3 == 1 ? 0x11000 : 0x10FFFF;
    const auto low = static_cast<char32_t>(random.below(top));
    const auto high = low + static_cast<char32_t>(random.below(top - low + 1));
    const model::code_points set{{low, high}};
    if (set.empty()) continue;
    auto states = tests::states_of(
        [&](grammar& g, auto next) { return model::one_of(g, set, spelling::plain, next); });
    CAPTURE(low);
    CAPTURE(high);
    for (int i = 0; i < 300; ++i) {
      const char32_t near[] = {low, high, static_cast<char32_t>(random.below(top + 1))};
      auto c = near[i % 3] + static_cast<char32_t>(random.below(5)) - 2;
      if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) continue;
      std::string text;
      append_utf8(text, c);
      CHECK(takes(states, text) == (c >= low && c <= high));
    }
  }
}

TEST_CASE("what is no regular expression here is refused with its place") {
  const std::vector<std::pair<const char*, const char*>> wrong{
      {"x{,2}y", "{0,n}"},
      {"x{,}", "{0,n}"},
      {"\\01", "octal"},
      {"[^]a]", "\\]"},
      {"[]a]", "\\]"},
      {"[\\07]", "octal"},
      {"(a", "not closed"},
      {"a)", "unmatched )"},
      {"[a", "not closed"},
      {"*a", "to repeat"},
      {"a**", "to repeat"},
      {"a{3,2}", "out of order"},
      {"a{1", "not closed"},
      {"(?=a)", "look-around"},
      {"(?<!a)", "look-around"},
      {"(?P=a)", "a back reference, (?P=, is not supported at byte 2"},
      {"x(?>a)", "an atomic group, (?>, is not supported at byte 3"},
      {"(?#a)", "a comment, (?#, is"},
      {"(?i)a", "flags of groups, (?i, are"},
      {"(?-i:a)", "flags of groups, (?-, are"},
      {"(?(1)a|b)", "a condition, (?(, is"},
      {"(?", "a group cannot begin so"},
      {"a++", "possessive counts"},
      {"a{1,2}+", "possessive counts"},
      {"(?P<a", "does not end"},
      {"\\q", "not supported"},
      {"\\1", "not supported"},
      {"\\bword", "not supported"},
      {"\\p{L}", "not supported"},
      {"[z-a]", "reversed"},
      {"a{99999}", "above 10000"},
      {"\\", "ends the expression"},
      {"\\xZZ", "hexadecimal"},
      {"\\uD800", "no such"},
      {"a\\ud800\\u0041", "low one"},
      {"[]", "no characters"},
      {"\xFF", "UTF-8"},
  };
  for (const auto& [expression, words] : wrong) {
    CAPTURE(expression);
    CHECK_THROWS_WITH_AS(regular_expression::parse(expression), doctest::Contains(words),
                         regular_expression_error);
  }
  CHECK_THROWS_AS(regular_expression::parse(std::string(5'000, 'a')), regular_expression_error);
  CHECK_THROWS_AS(regular_expression::parse(std::string(50, '(')), regular_expression_error);
  CHECK_THROWS_WITH_AS(states_of("a^b"), doctest::Contains("ends of an alternative"),
                       regular_expression_error);
}

TEST_CASE("counts without a least one and brackets in classes are read as Python has them") {
  using reading = regular_expression::reading;
  const auto takes_text = [](const char* expression, std::string_view text) {
    auto states = tests::states_of([&](grammar& g, auto next) {
      return regular_expression::parse(expression, reading::python)
          .compile(g, match::whole, spelling::plain, next);
    });
    return takes(states, text);
  };
  CHECK(takes_text("x{,2}y", "y"));
  CHECK(takes_text("x{,2}y", "xxy"));
  CHECK_FALSE(takes_text("x{,2}y", "xxxy"));
  CHECK(takes_text("x{,}", "xxxx"));
  CHECK(takes_text("x{,a}", "x{,a}"));
  CHECK(takes_text("[]a]+", "a]a"));
  CHECK(takes_text("[^]]", "a"));
  CHECK_FALSE(takes_text("[^]]", "]"));
  CHECK(takes_text("[]-_]", "^"));
  for (const auto* wrong : {"[]", "[^]", "{,2}", "x{,2}{,3}"})
    CHECK_THROWS_AS(regular_expression::parse(wrong, reading::python), regular_expression_error);
}

TEST_CASE("opposites of classes take no more than Python's do") {
  struct row {
    const char* expression;
    std::vector<std::string> taken, refused;
  };
  const std::string e = "\xC3\xA9", three = "\xD9\xA3", half = "\xC2\xBD", mark = "\xCC\x81",
                    no_break = "\xC2\xA0", byte_order = "\xEF\xBB\xBF", next_line = "\xC2\x85";
  for (const auto& x :
       {row{"\\D", {"a", e, mark}, {"1", three}},
        row{"\\W", {"-", mark, no_break}, {"a", "_", e, three, half}},
        row{"[^\\w]", {"-", mark}, {"a", e, three}}, row{"[^\\W]", {"a", "1", "_"}, {"-", e}},
        row{"[\\W\\d]", {"1", "-"}, {e, three}},
        row{"\\s", {" ", no_break}, {byte_order, "\x1C", next_line, "a"}},
        row{"\\S", {"a", e, byte_order}, {" ", "\x1C", next_line, no_break}}}) {
    CAPTURE(x.expression);
    auto states = tests::states_of([&](grammar& g, auto next) {
      return regular_expression::parse(x.expression, regular_expression::reading::python)
          .compile(g, match::whole, spelling::plain, next);
    });
    for (const auto& text : x.taken) CHECK_MESSAGE(takes(states, text), text);
    for (const auto& text : x.refused) CHECK_MESSAGE(!takes(states, text), text);
  }
}

TEST_CASE("repeats within repeats of nothing cost no more than others") {
  std::string nothing = "()", something = "(a)";
  for (int i = 0; i < 25; ++i) {
    nothing = "(" + nothing + "{4})";
    something = "(" + something + "{4})";
  }
  CHECK_THROWS_AS(states_of(nothing), regular_expression_error);
  CHECK_THROWS_AS(states_of(something), model::grammar_error);
}
