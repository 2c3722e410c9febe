#include "model/jinja/lexer.hpp"

#include "model/jinja/data.hpp"
#include "model/jinja/text.hpp"

#include <array>
#include <charconv>

namespace lamella::model::jinja {
namespace {

/// One newline form, and without the last newline of the file.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
         || static_cast<unsigned char>(c) >= 0x80;
}

class lexer {
public:
  explicit lexer(std::string_view source) : source_{normalized(source)} {}

  std::vector<token> run() {
    while (at_ < source_.size()) read_data();
    push(token_kind::end);
    return std::move(tokens_);
  }

private:
  [[noreturn]] void fail(const std::string& message) const {
    throw chat_template_error{chat_template_error::kind::syntax, line_, message};
  }

  bool looking_at(std::string_view word, size_t at) const {
    return source_.compare(at, word.size(), word) == 0;
  }

  token& push(token_kind kind, std::string text = {}) {
    token x;
    x.kind = kind;
    x.line = line_;
    x.text = std::move(text);
    return tokens_.emplace_back(std::move(x));
  }

  void advance_to(size_t position) {
    for (; at_ < position; ++at_)
      if (source_[at_] == '\n') ++line_;
  }

  size_t after_space(size_t at) const {
    while (at < source_.size() && is_space(character_at(source_, at)))
      at += character_bytes(source_, at);
    return at;
  }

  /// Text up to the next tag, cut as the tag's sign and lstrip_blocks say, then the tag.
  void read_data() {
    size_t tag = at_;
    while (tag < source_.size()
           && !(source_[tag] == '{' && tag + 1 < source_.size()
                && (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#')))
      ++tag;
    const auto data = std::string_view{source_}.substr(at_, tag - at_);
    if (tag >= source_.size()) {
      if (!data.empty()) push(token_kind::data, std::string{data});
      advance_to(tag);
      return;
    }
    const char type = source_[tag + 1];
    size_t inside = tag + 2;
    char sign = 0;
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
      sign = source_[inside++];
    push_data(data, sign, type == '{');
    advance_to(inside);
    line_starting_ = false;
    if (type == '#')
      skip_comment();
    else if (type == '{')
      read_tag(token_kind::variable_begin, token_kind::variable_end, "}}");
    else if (!read_raw())
      read_tag(token_kind::block_begin, token_kind::block_end, "%}");
  }

  void push_data(std::string_view data, char sign, bool is_variable) {
    if (sign == '-') {
      data = data.substr(0, strip(data, false, true).to);
    } else if (sign != '+' && !is_variable) {
      const auto newline = data.rfind('\n');
      const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
      const bool at_line_start = newline != std::string_view::npos || line_starting_;
      // Only white space between the start of the line and the tag: it goes.
      if (at_line_start && strip(data.substr(start), true, false).from == data.size() - start)
        data = data.substr(0, start);
    }
    if (!data.empty()) push(token_kind::data, std::string{data});
  }

  /// Length of the end of a tag at `at` with what it swallows after it, or 0. `trims` is
  /// trim_blocks: one newline goes with a block or comment.
  size_t end_of_tag(size_t at, std::string_view close, bool trims) const {
    if (looking_at(close, at)) {
      const size_t next = at + close.size();
      return next - at + (trims && next < source_.size() && source_[next] == '\n' ? 1 : 0);
    }
    if (at < source_.size() && source_[at] == '-' && looking_at(close, at + 1))
      return after_space(at + 1 + close.size()) - at;
    if (trims && at < source_.size() && source_[at] == '+' && looking_at(close, at + 1))
      return 1 + close.size();
    return 0;
  }

  void finish_tag(size_t length) {
    advance_to(at_ + length);
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void skip_comment() {
    for (size_t at = at_; at < source_.size(); ++at) {
      if (const size_t length = end_of_tag(at, "#}", true); length != 0) {
        advance_to(at);
        finish_tag(length);
        return;
      }
    }
    fail("a comment {# is not closed");
  }

  /// {% raw %}: everything up to {% endraw %} is text. False when this is another tag.
  bool read_raw() {
    size_t at = after_space(at_);
    if (!looking_at("raw", at)) return false;
    at = after_space(at + 3);
    if (looking_at("-%}", at))
      at = after_space(at + 3);
    else if (looking_at("%}", at))
      at += 2;
    else
      return false;
    const size_t start = at;
    line_starting_ = source_[start - 1] == '\n';
    for (; at < source_.size(); ++at) {
      if (!looking_at("{%", at)) continue;
      size_t inside = at + 2;
      char sign = 0;
      if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
        sign = source_[inside++];
      inside = after_space(inside);
      if (!looking_at("endraw", inside)) continue;
      inside = after_space(inside + 6);
      const size_t length = end_of_tag(inside, "%}", true);
      if (length == 0) continue;
      push_data(std::string_view{source_}.substr(start, at - start), sign, false);
      advance_to(inside);
      finish_tag(length);
      return true;
    }
    fail("a raw block is not closed");
  }

  void read_tag(token_kind begin, token_kind end, std::string_view close) {
    push(begin);
    std::string open_brackets;
    while (true) {
      advance_to(after_space(at_));
      if (at_ >= source_.size()) fail("a tag is not closed");
      if (open_brackets.empty()) {
        if (const size_t length = end_of_tag(at_, close, end == token_kind::block_end)) {
          push(end);
          finish_tag(length);
          return;
        }
      }
      read_token(open_brackets);
    }
  }

  void read_token(std::string& open_brackets) {
    const char c = source_[at_];
    if (is_digit(c)) {
      read_number();
    } else if (is_name_start(c)) {
      size_t to = at_;
      while (to < source_.size() && (is_name_start(source_[to]) || is_digit(source_[to]))) ++to;
      push(token_kind::name, source_.substr(at_, to - at_));
      at_ = to;
    } else if (c == '\'' || c == '"') {
      read_string(c);
    } else {
      read_symbol(open_brackets);
    }
  }

  void read_symbol(std::string& open_brackets) {
    static constexpr std::array<std::string_view, 6> pairs{"//", "**", "==", "!=", ">=", "<="};
    for (const auto pair : pairs)
      if (looking_at(pair, at_)) {
        push(token_kind::symbol, std::string{pair});
        at_ += 2;
        return;
      }
    const char c = source_[at_];
    if (std::string_view{"+-/*%~[](){}<>=.:|,;"}.find(c) == std::string_view::npos)
      fail("the character " + source_.substr(at_, character_bytes(source_, at_))
           + " is not part of the language");
    if (c == '(' || c == '[' || c == '{') {
      open_brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c)
        fail(std::string{"the bracket "} + c + " does not fit");
      open_brackets.pop_back();
    }
    push(token_kind::symbol, std::string(1, c));
    ++at_;
  }

  void read_number() {
    size_t to = at_;
    std::string digits;
    const auto take_digits = [&] {
      while (to < source_.size()
             && (is_digit(source_[to])
                 || (source_[to] == '_' && to + 1 < source_.size() && is_digit(source_[to + 1])))) {
        if (source_[to] != '_') digits += source_[to];
        ++to;
      }
    };
    take_digits();
    bool is_real = false;
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    // x.0.1 has no number 0.1 in it: a digit after a dot stays an index.
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && to < source_.size() && source_[to] == '.' && digit_at(to + 1)) {
      is_real = true;
      digits += '.';
      ++to;
      take_digits();
    }
    if (!after_dot && to < source_.size() && (source_[to] == 'e' || source_[to] == 'E')) {
      size_t exponent = to + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
        ++exponent;
      if (digit_at(exponent)) {
        is_real = true;
        digits += 'e';
        if (source_[exponent - 1] == '-') digits += '-';
        to = exponent;
        take_digits();
      }
    }
    auto& made = push(is_real ? token_kind::floating : token_kind::integer);
    const char* first = digits.data();
    const char* last = first + digits.size();
    const auto result = is_real ? std::from_chars(first, last, made.real)
                                : std::from_chars(first, last, made.whole);
    if (result.ec != std::errc{} || result.ptr != last)
      fail("the number " + digits + " is too large");
    at_ = to;
  }

  void read_string(char quote) {
    std::string out;
    const uint32_t start = line_;
    size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] != '\\') {
        out += source_[at];
        continue;
      }
      if (++at >= source_.size()) break;
      read_escape(out, at);
    }
    if (at >= source_.size()) fail("a string is not closed");
    push(token_kind::string, std::move(out)).line = start;
    advance_to(at + 1);
  }

  /// The escapes of Python strings. `at` is the character after the backslash and ends on the last
  /// one used.
  void read_escape(std::string& out, size_t& at) {
    const char c = source_[at];
    constexpr std::string_view plain = "abfnrtv\\'\"";
    constexpr std::string_view means = "\a\b\f\n\r\t\v\\'\"";
    if (const auto i = plain.find(c); i != std::string_view::npos) {
      out += means[i];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t length = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      const char* first = source_.data() + at + 1;
      if (at + length >= source_.size()) fail("an escape in a string is cut short");
      const auto [end, failure] = std::from_chars(first, first + length, code, 16);
      if (failure != std::errc{} || end != first + length || code > 0x10ffff
          || (code >= 0xd800 && code < 0xe000))
        fail("an escape in a string does not name a character");
      append_utf8(out, code);
      at += length;
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      size_t digits = 0;
      for (; digits < 3 && at + digits < source_.size() && source_[at + digits] >= '0'
             && source_[at + digits] <= '7';
           ++digits)
        code = code * 8 + static_cast<char32_t>(source_[at + digits] - '0');
      append_utf8(out, code);
      at += digits - 1;
    } else if (c != '\n') { // a backslash at the end of a line joins the lines
      out += '\\';
      out += c;
    }
  }

  std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true; ///< nothing but white space since the last newline
  std::vector<token> tokens_;
};

} // namespace

std::vector<token> tokenize(std::string_view source) { return lexer{source}.run(); }

} // namespace lamella::model::jinja
