/// Regular expressions as grammars: the part of ECMA-262's language that describes texts without
/// looking around.
#pragma once

#include "model/grammar/code_points.hpp"
#include "model/grammar/grammar.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// The expression is not in the language; what() names the place.
struct regular_expression_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Literals, `.`, classes, `\d \w \s` and their opposites, escapes of characters, groups (captures
/// mean nothing), `|`, `* + ? {m,n}` (greedy or not: the same texts), and `^` and `$` at the ends
/// of alternatives. Not: look-around, back references, word boundaries, properties of characters.
/// What languages read in different ways is read as the caller's language has it (`reading`) or
/// refused: octal escapes.
///
/// Parsed by descent with a bound on nesting; the cost of everything is linear in the expression,
/// counts included, but for small counts within small counts, which are copies: their number is
/// bounded.
class regular_expression {
public:
  static constexpr size_t bytes_max = 4'096;
  static constexpr uint32_t depth_max = 32; ///< of groups
  static constexpr uint32_t count_max = 10'000;

  /// Python: `{,n}` is {0,n}, and a `]` that comes first in a class is one of its characters.
  /// ECMA-262 has other meanings for both, which are refused: nobody may mean them.
  enum class reading : uint8_t { ecma, python };
  /// Throws regular_expression_error.
  static regular_expression parse(std::string_view text, reading as = reading::ecma);

  /// What a text must be as a whole (`whole`), or what it must have somewhere, unless anchors say
  /// where. `how` spells characters.
  enum class match : uint8_t { whole, somewhere };
  grammar::node_id compile(grammar& g, match what, spelling how, grammar::node_id next) const;

  /// Does a repeat in it come as few times as possible? The same texts match as a whole, but
  /// another one is found first.
  bool is_lazy() const;
  /// The most characters of a text that matches; grammar::unbounded: any number.
  uint32_t longest() const;

  struct part;
  /// Of the whole expression, without the anchors at its ends.
  struct alternative;
  std::vector<alternative> alternatives() const;

private:
  std::shared_ptr<const part> root_; ///< a choice of alternatives
};

} // namespace lamella::model
