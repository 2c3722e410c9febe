#include "model/grammar/regular_expression_parts.hpp"

#include "base/utf8.hpp"
#include "model/tokenizer/characters.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace lamella::model {

namespace {

using part = regular_expression::part;
using part_kind = part::kind;

/// The characters that a class takes. Python's classes have more of them than we let an answer have
/// (its \d takes the digits of all scripts): all that they may take are `wide`, and an opposite
/// takes none of these, so that whatever is taken here is taken there, too.
struct character_class {
  code_points taken, wide;

  character_class() = default;
  character_class(const code_points& exactly) : taken{exactly}, wide{exactly} {}
  character_class(code_points narrow, code_points most)
      : taken{std::move(narrow)}, wide{std::move(most)} {}

  character_class opposite() const {
    return {code_points::all().without(wide), code_points::all().without(taken)};
  }
};

/// All characters of some kinds, and a few more. Cost: milliseconds.
code_points of_kinds(std::initializer_list<character_kind> kinds, code_points set) {
  constexpr char32_t end = 0x110000;
  const auto is = [&](char32_t c) {
    return c < end && std::ranges::find(kinds, kind_of(c)) != kinds.end();
  };
  for (char32_t c = 0; c < end; ++c) {
    if (!is(c)) continue;
    const auto first = c;
    while (is(c + 1)) ++c;
    set.add(first, c);
  }
  return set;
}

const code_points ascii_digits{{'0', '9'}};
const code_points ascii_word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const code_points common_space{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                               {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                               {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

/// Of \d, \w and \s, as ECMA-262 has them, or narrower than Python's.
character_class digits(bool as_python) {
  if (!as_python) return {ascii_digits};
  static const auto all = of_kinds({character_kind::number}, {});
  return {ascii_digits, all};
}

character_class word(bool as_python) {
  if (!as_python) return {ascii_word};
  static const auto all = of_kinds({character_kind::letter, character_kind::number}, {{'_', '_'}});
  return {ascii_word, all};
}

character_class space(bool as_python) {
  auto wide = common_space;
  if (as_python) // Python's has no U+FEFF
    for (const auto& [low, high] : {code_points::range{0x1C, 0x1F}, {0x85, 0x85}})
      wide.add(low, high);
  else
    wide.add(0xFEFF, 0xFEFF);
  return as_python ? character_class{common_space, wide} : character_class{wide};
}

const code_points line_ends{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

part characters(code_points set) { return {part_kind::characters, std::move(set), {}, 0, 0}; }
part anchor(part_kind what) { return {what, {}, {}, 0, 0}; }

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
    part x{part_kind::choice, {}, {}, 0, 0};
    do x.inner.push_back(sequence(depth));
    while (take("|"));
    return x;
  }

  part sequence(uint32_t depth) {
    part x{part_kind::sequence, {}, {}, 0, 0};
    while (!ends() && peek() != '|' && peek() != ')') {
      auto one = atom(depth);
      const bool anchored = one.what == part_kind::begin || one.what == part_kind::end;
      if (is_quantifier() && anchored) fail("nothing to repeat");
      const bool repeats = is_quantifier();
      if (repeats) one = quantified(std::move(one));
      if (repeats && peek() == '+') fail("possessive counts, as in a++, are not supported");
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
    if (take("^")) return anchor(part_kind::begin);
    if (take("$")) return anchor(part_kind::end);
    if (take(".")) return characters(code_points::all().without(line_ends));
    if (take("\\")) return characters(escape(false).taken);
    if (is_quantifier()) fail("nothing to repeat");
    const auto c = character();
    return characters({{c, c}});
  }

  /// A group that begins with `(?` in a way that is not known: `rest` is behind that.
  [[noreturn]] void fail_group(std::string_view rest) const {
    struct construct {
      std::string_view begins, name;
    };
    constexpr construct constructs[] = {
        {"=", "look-around, "},       {"!", "look-around, "},     {"<=", "look-around, "},
        {"<!", "look-around, "},      {">", "an atomic group, "}, {"#", "a comment, "},
        {"P=", "a back reference, "}, {"P>", "a recursion, "},    {"&", "a recursion, "},
        {"R", "a recursion, "},       {"(", "a condition, "},     {"|", "a branch reset, "},
    };
    for (const auto& [begins, name] : constructs)
      if (rest.starts_with(begins))
        fail(std::string{name} + "(?" + std::string{begins} + ", is not supported");
    const auto c = rest.empty() ? '\0' : rest.front();
    if (c == '-' || c == '^' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      fail("flags of groups, (?" + std::string(1, c) + ", are not supported");
    fail("a group cannot begin so: behind (? are : or <name> supported");
  }

  part group(uint32_t depth) {
    if (take("?")) {
      const auto rest = text_.substr(at_);
      if (take("P<") || (take("<") && peek() != '=' && peek() != '!')) {
        while (!ends() && peek() != '>') ++at_;
        if (!take(">")) fail("the name of a group does not end");
      } else if (!take(":")) {
        fail_group(rest);
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
    part x{part_kind::repeat, {}, {}, 0, grammar::unbounded};
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
      if (c >= 0xD800 && c <= 0xDBFF && take("\\u")) { // a pair
        const auto low = hexadecimal(4);
        if (low < 0xDC00 || low > 0xDFFF) fail("a high surrogate needs a low one behind it");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      }
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
  character_class escape(bool in_class) {
    if (ends()) fail("a \\ ends the expression");
    const auto begin = at_;
    const auto c = character();
    const auto one = [this](char32_t x) -> character_class {
      if (x > 0x10FFFF || (x >= 0xD800 && x <= 0xDFFF)) fail("no such character");
      return code_points{{x, x}};
    };
    switch (c) {
    case 'd':
      return digits(as_python_);
    case 'D':
      return digits(as_python_).opposite();
    case 'w':
      return word(as_python_);
    case 'W':
      return word(as_python_).opposite();
    case 's':
      return space(as_python_);
    case 'S':
      return space(as_python_).opposite();
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
      if (c == '_' || !word(false).taken.contains(c)) return one(c); // not of letters and digits
    }
    at_ = begin;
    fail("\\" + std::string(1, static_cast<char>(c)) + " is not supported");
  }

  character_class class_item() {
    if (take("\\")) return escape(true);
    const auto c = character();
    return code_points{{c, c}};
  }

  /// The only character of a class; nothing where it has several.
  static std::optional<char32_t> only(const character_class& set) {
    const auto& ranges = set.taken.ranges();
    if (ranges.size() != 1 || ranges[0].first != ranges[0].second) return {};
    return ranges[0].first;
  }

  code_points class_set() {
    const bool negated = take("^");
    if (!as_python_ && peek() == ']')
      fail(negated ? "write [\\s\\S] for any character, or \\] for a ] in a class"
                   : "a class has no characters; write \\] for a ] in a class");
    std::vector<code_points::range> taken, wide; // in one go at the end: that is linear
    const auto add = [&](const character_class& x) {
      taken.insert(taken.end(), x.taken.ranges().begin(), x.taken.ranges().end());
      wide.insert(wide.end(), x.wide.ranges().begin(), x.wide.ranges().end());
    };
    for (bool is_first = as_python_; is_first || peek() != ']'; is_first = false) {
      if (ends()) fail("a [ is not closed");
      const auto first = class_item();
      const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range || !only(first)) {
        add(first);
        continue;
      }
      take("-");
      const auto last = only(class_item());
      if (!last) fail("a range of a class must end with a character");
      if (*last < *only(first)) fail("a range of a class is reversed");
      add(code_points{{*only(first), *last}});
    }
    take("]");
    character_class set{code_points::of(std::move(taken)), code_points::of(std::move(wide))};
    if (negated) set = set.opposite();
    if (set.taken.empty()) fail("a class has no characters");
    return set.taken;
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
