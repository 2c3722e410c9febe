#include "model/grammar/text/text_cursor.hpp"

#include "base/utf8.hpp"

namespace lamella::model {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

} // namespace

std::string text_cursor::name(std::string_view more) {
  const auto begin = at;
  while (!ends() && (is_letter(peek()) || is_digit(peek()) || more.find(peek()) != more.npos)) ++at;
  return std::string{source_.substr(begin, at - begin)};
}

char32_t text_cursor::character() {
  const auto unit = decode_utf8(source_, at);
  if (unit.kind != utf8_unit::state::valid) fail("this is no UTF-8");
  at += unit.bytes;
  return unit.code_point;
}

char32_t text_cursor::hexadecimal(size_t digits) {
  char32_t value = 0;
  for (; digits > 0; --digits, ++at) {
    const auto c = peek();
    const auto digit = is_digit(c)            ? c - '0'
                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                       : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                              : -1;
    if (digit < 0) fail("a hexadecimal digit is missing");
    value = value << 4 | static_cast<char32_t>(digit);
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) fail("there is no such character");
  return value;
}

/// Behind a backslash.
char32_t text_cursor::escaped() {
  if (ends()) fail("a \\ ends the grammar");
  const auto c = character();
  switch (c) {
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  case 'f':
    return '\f';
  case 'v':
    return '\v';
  case 'b':
    return '\b';
  case '0':
    return 0;
  case 'x':
    return hexadecimal(2);
  case 'u':
    return hexadecimal(4);
  case 'U':
    return hexadecimal(8);
  default:
    break;
  }
  if (c < 0x80 && (is_letter(static_cast<char>(c)) || is_digit(static_cast<char>(c))) && c != '_') {
    --at;
    fail("\\" + std::string(1, static_cast<char>(c))
         + " is not supported; write the character, or "
           "\\xHH or \\uHHHH");
  }
  return c;
}

std::string text_cursor::quoted(char quote) {
  const auto begin = at - 1;
  std::string text;
  while (peek() != quote) {
    if (ends() || peek() == '\n') fail_at(source_, begin, "this text is not closed");
    append_utf8(text, take("\\") ? escaped() : character());
  }
  ++at;
  return text;
}

code_points text_cursor::characters() {
  const auto begin = at - 1;
  const bool negated = take("^");
  std::vector<code_points::range> items;
  while (peek() != ']') {
    if (ends() || peek() == '\n') fail_at(source_, begin, "this [ is not closed");
    const auto first = take("\\") ? escaped() : character();
    auto last = first;
    if (peek() == '-' && peek(1) != ']') {
      ++at;
      if (ends()) continue;
      last = take("\\") ? escaped() : character();
    }
    if (last < first) fail("a range of a class is reversed");
    items.emplace_back(first, last);
  }
  ++at;
  auto set = code_points::of(std::move(items));
  if (negated) set = code_points::all().without(set);
  if (set.empty()) fail_at(source_, begin, "a class has no characters");
  return set;
}

uint32_t text_cursor::count() {
  if (!is_digit(peek())) fail("a count is missing");
  uint32_t n = 0;
  for (; is_digit(peek()); ++at) {
    n = n * 10 + static_cast<uint32_t>(peek() - '0');
    if (n > count_max) fail("a count is above " + std::to_string(count_max));
  }
  return n;
}

grammar_part text_cursor::repeated(grammar_part body, uint32_t min, uint32_t max) const {
  if (max < min) fail("the counts of a repeat are out of order");
  grammar_part x{grammar_part::kind::repeat, body.at};
  x.min = min;
  x.max = max;
  if (max == 0) return {grammar_part::kind::sequence, body.at};
  x.inner.push_back(std::move(body));
  return x;
}

void text_cursor::refuse_quantifier() const {
  if (std::string_view{"*+?{~"}.find(peek()) != std::string_view::npos && !ends())
    fail("a quantifier stands behind another one: put what the first one repeats into ( )");
}

bool text_cursor::quantifier(uint32_t& min, uint32_t& max) {
  min = 0;
  max = grammar::unbounded;
  if (take("*")) return true;
  if (take("+")) {
    min = 1;
    return true;
  }
  if (take("?")) {
    max = 1;
    return true;
  }
  if (!take("{")) return false;
  const auto blanks = [this] {
    while (peek() == ' ') ++at;
  };
  blanks();
  min = peek() == ',' ? 0 : count();
  blanks();
  max = min;
  if (take(",")) {
    blanks();
    max = peek() == '}' ? grammar::unbounded : count();
  }
  blanks();
  if (!take("}")) fail("a { is not closed");
  return true;
}

} // namespace lamella::model
