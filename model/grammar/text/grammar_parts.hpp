/// What the rules of a grammar that was read from a text are made of.
#pragma once

#include "model/grammar/code_points.hpp"
#include "model/grammar/grammar.hpp"
#include "model/grammar/regular_expression.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

struct grammar_part {
  enum class kind : uint8_t {
    text,       ///< `text` as it stands, or in any case
    characters, ///< one of `set`
    expression, ///< what the regular expression `text` matches as a whole
    sequence,   ///< all of `inner`, in order; none: nothing
    choice,     ///< one of `inner`
    repeat,     ///< inner[0], min to max times
    reference   ///< the rule `text`
  };
  kind what = kind::sequence;
  size_t at = 0; ///< byte of the source, for errors
  std::string text{};
  bool any_case = false; ///< of the letters of ASCII
  code_points set{};
  std::vector<grammar_part> inner{};
  uint32_t min = 0, max = 0;
};

struct grammar_rule {
  std::string name;
  size_t at = 0; ///< byte of the source
  grammar_part body{};
  bool is_terminal = false; ///< nothing is ignored within it
};

struct grammar_rules {
  std::vector<grammar_rule> rules;
  std::string start;
  /// Terminals that may stand before the first terminal and behind each.
  std::vector<grammar_part> ignored{};
  bool has_lexer = false; ///< its terminals are read by a lexer (grammar::terminal_end)
};

/// Throws grammar_text_error at a byte of the source.
[[noreturn]] void fail_at(std::string_view source, size_t at, const std::string& why);

/// The regular expression that stands at `at`. Throws grammar_text_error.
regular_expression parse_expression(const std::string& text, size_t at, std::string_view source);

} // namespace lamella::model
