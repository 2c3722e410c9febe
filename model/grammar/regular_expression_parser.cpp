#include "model/grammar/regular_expression_parts.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

using part = regular_expression::part;
using kind = part::kind;

const code_points digits{{'0', '9'}};
const code_points word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const code_points space{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                        {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const code_points line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

code_points opposite(const code_points& set) { return code_points::all().without(set); }

part characters(code_points set) { return {kind::characters, std::move(set), {}, 0, 0}; }
part anchor(kind what) { return {what, {}, {}, 0, 0}; }

class parser {
public:
  parser(std::string_view text, bool as_python) : text_{text}, as_python_{as_python} {}

  part parse() {
    auto result = choice(0);
    if (at_ < text_.size()) fail("unmatched )");
    return result;
  }

private:
  [[noreturn]] void fail(const std::string& why) const {
    throw regular_expression_error(why + " at byte " + std::to_string(at_) + " of the expression");
  }

  bool ends() const { return at_ >= text_.size(); }
  char peek() const { return ends() ? '\0' : text_[at_]; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  char32_t character() {
    const auto unit = decode_utf8(text_, at_);
    if (unit.kind != utf8_unit::state::valid) fail("invalid UTF-8");
    at_ += unit.bytes;
    return unit.code_point;
  }

  part choice(uint32_t depth) {
    if (depth > regular_expression::depth_max) fail("groups are nested too deeply");
    part x{kind::choice, {}, {}, 0, 0};
    do x.inner.push_back(sequence(depth));
    while (take("|"));
    return x;
  }

  part sequence(uint32_t depth) {
    part x{kind::sequence, {}, {}, 0, 0};
    while (!ends() && peek() != '|' && peek() != ')') {
      auto one = atom(depth);
      const bool anchored = one.what == kind::begin || one.what == kind::end;
      if (is_quantifier() && anchored) fail("nothing to repeat");
      if (is_quantifier()) one = quantified(std::move(one));
      if (is_quantifier()) fail("nothing to repeat");
      x.inner.push_back(std::move(one));
    }
    return x;
  }

  /// Does `{,n}` or `{,}` come next?
  bool is_count_without_least() const {
    auto at = at_ + 1;
    if (peek() != '{' || text_.substr(at, 1) != ",") return false;
    do ++at;
    while (at < text_.size() && text_[at] >= '0' && text_[at] <= '9');
    return text_.substr(at, 1) == "}";
  }

  part atom(uint32_t depth) {
    if (!as_python_ && is_count_without_least()) // what people mean by it is not guessed
      fail("write {0,n} for {,n}, or \\{ for the character");
    if (take("(")) return group(depth);
    if (take("[")) return characters(class_set());
    if (take("^")) return anchor(kind::begin);
    if (take("$")) return anchor(kind::end);
    if (take(".")) return characters(opposite(line_ends));
    if (take("\\")) return characters(escape(false));
    if (is_quantifier()) fail("nothing to repeat");
    const auto c = character();
    return characters({{c, c}});
  }

  part group(uint32_t depth) {
    if (take("?")) {
      if (take("P<") || (take("<") && peek() != '=' && peek() != '!')) {
        while (!ends() && peek() != '>') ++at_;
        if (!take(">")) fail("the name of a group does not end");
      } else if (!take(":")) {
        fail("look-around and flags of groups are not supported");
      }
    }
    auto inner = choice(depth + 1);
    if (!take(")")) fail("a ( is not closed");
    return inner;
  }

  /// `{` without a count behind it is a character, as browsers read it.
  bool is_quantifier() const {
    const auto c = peek();
    return c == '*' || c == '+' || c == '?'
           || (c == '{' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
           || (as_python_ && is_count_without_least());
  }

  uint32_t count() {
    if (peek() < '0' || peek() > '9') fail("a count is missing");
    uint32_t n = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      n = n * 10 + static_cast<uint32_t>(peek() - '0');
      if (n > regular_expression::count_max)
        fail("a count is above " + std::to_string(regular_expression::count_max));
    }
    return n;
  }

  part quantified(part body) {
    part x{kind::repeat, {}, {}, 0, grammar::unbounded};
    x.inner.push_back(std::move(body));
    if (take("+")) {
      x.min = 1;
    } else if (take("?")) {
      x.max = 1;
    } else if (take("{")) {
      x.min = x.max = peek() == ',' ? 0 : count();
      if (take(",")) x.max = peek() == '}' ? grammar::unbounded : count();
      if (!take("}")) fail("a { is not closed");
      if (x.max < x.min) fail("the counts of a repeat are out of order");
    } else {
      take("*");
    }
    x.is_lazy = take("?");
    return x;
  }

  char32_t hexadecimal(size_t digits_wanted) {
    char32_t value = 0;
    for (size_t i = 0; i < digits_wanted; ++i, ++at_) {
      const auto c = peek();
      const auto digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : -1;
      if (digit < 0) fail("a hexadecimal digit is missing");
      value = value << 4 | static_cast<char32_t>(digit);
    }
    return value;
  }

  char32_t unicode() {
    if (!take("{")) {
      auto c = hexadecimal(4);
      if (c >= 0xD800 && c <= 0xDBFF && take("\\u")) // a pair
        c = 0x10000 + ((c - 0xD800) << 10) + (hexadecimal(4) - 0xDC00);
      return c;
    }
    size_t length = 0;
    while (at_ + length < text_.size() && text_[at_ + length] != '}') ++length;
    if (length == 0 || length > 6) fail("\\u{...} needs 1 to 6 hexadecimal digits");
    const auto c = hexadecimal(length);
    take("}");
    return c;
  }

  /// What is behind a backslash. `in_class`: within brackets.
  code_points escape(bool in_class) {
    if (ends()) fail("a \\ ends the expression");
    const auto begin = at_;
    const auto c = character();
    const auto one = [this](char32_t x) -> code_points {
      if (x > 0x10FFFF || (x >= 0xD800 && x <= 0xDFFF)) fail("no such character");
      return {{x, x}};
    };
    switch (c) {
    case 'd':
      return digits;
    case 'D':
      return opposite(digits);
    case 'w':
      return word;
    case 'W':
      return opposite(word);
    case 's':
      return space;
    case 'S':
      return opposite(space);
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 't':
      return one('\t');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    case '0':
      if (peek() >= '0' && peek() <= '9') fail("octal escapes are not supported; write \\xHH");
      return one(0);
    case 'x':
      return one(hexadecimal(2));
    case 'u':
      return one(unicode());
    case 'b':
      if (in_class) return one('\b');
      break;
    default:
      if (c == '_' || !word.contains(c)) return one(c); // not of letters and digits
    }
    at_ = begin;
    fail("\\" + std::string(1, static_cast<char>(c)) + " is not supported");
  }

  code_points class_item() {
    if (take("\\")) return escape(true);
    const auto c = character();
    return {{c, c}};
  }

  static bool is_one(const code_points& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second;
  }

  code_points class_set() {
    const bool negated = take("^");
    if (!as_python_ && peek() == ']')
      fail(negated ? "write [\\s\\S] for any character, or \\] for a ] in a class"
                   : "a class has no characters; write \\] for a ] in a class");
    code_points set;
    for (bool is_first = as_python_; is_first || peek() != ']'; is_first = false) {
      if (ends()) fail("a [ is not closed");
      const auto first = class_item();
      const bool range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!range || !is_one(first)) {
        set.add(first);
        continue;
      }
      take("-");
      const auto last = class_item();
      if (!is_one(last)) fail("a range of a class must end with a character");
      if (last.ranges()[0].first < first.ranges()[0].first) fail("a range of a class is reversed");
      set.add(first.ranges()[0].first, last.ranges()[0].first);
    }
    take("]");
    if (negated) set = opposite(set);
    if (set.empty()) fail("a class has no characters");
    return set;
  }

  std::string_view text_;
  const bool as_python_;
  size_t at_ = 0;
};

} // namespace

regular_expression regular_expression::parse(std::string_view text, reading as) {
  if (text.size() > bytes_max)
    throw regular_expression_error("it has " + std::to_string(text.size()) + " bytes, at most "
                                   + std::to_string(bytes_max) + " are read");
  regular_expression result;
  result.root_ = std::make_shared<const part>(parser{text, as == reading::python}.parse());
  return result;
}

} // namespace lamella::model
