/// The rules of a grammar that was read from a text.
#pragma once

#include "model/grammar/code_points.hpp"
#include "model/grammar/grammar.hpp"

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
};

/// Throws grammar_text_error at a byte of the source.
[[noreturn]] void fail_at(std::string_view source, size_t at, const std::string& why);

/// Nodes for all rules; the first one of the start, followed by `next`. Throws grammar_text_error.
grammar::node_id compile_rules(grammar& g, grammar_rules rules, std::string_view source,
                               grammar::node_id next);

/// Reads rules. Throw grammar_text_error.
grammar_rules read_ebnf(std::string_view source);
grammar_rules read_lark(std::string_view source);

} // namespace lamella::model
