/// Reads the marks that EBNF and Lark share.
#pragma once

#include "model/grammar/text/grammar_rules.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace lamella::model {

class text_cursor {
public:
  static constexpr uint32_t depth_max = 64; ///< of groups
  static constexpr uint32_t count_max = 10'000;

  explicit text_cursor(std::string_view source) : source_{source} {}

  [[noreturn]] void fail(const std::string& why) const { fail_at(source_, at, why); }
  bool ends() const { return at >= source_.size(); }
  char peek(size_t ahead = 0) const {
    return at + ahead < source_.size() ? source_[at + ahead] : '\0';
  }
  std::string_view rest() const { return source_.substr(at); }
  bool take(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    at += token.size();
    return true;
  }

  /// Letters, digits, _ and, where `more` has them, others.
  std::string name(std::string_view more = {});
  /// Behind its opening quote: a text with escapes, up to the quote.
  std::string quoted(char quote);
  /// Behind its bracket, as in regular expressions.
  code_points characters();
  uint32_t count();
  /// A part with the `*`, `+`, `?` and `{m,n}` behind it.
  grammar_part repeated(grammar_part body, uint32_t min, uint32_t max) const;
  /// The `*`, `+`, `?` or `{m,n}` here. False: there is none.
  bool quantifier(uint32_t& min, uint32_t& max);
  /// Fails where one stands here: repeats of repeats nest, and groups alone are bounded in depth.
  void refuse_quantifier() const;

  size_t at = 0;

private:
  char32_t escaped();
  char32_t hexadecimal(size_t digits);
  char32_t character();

  std::string_view source_;
};

} // namespace lamella::model
