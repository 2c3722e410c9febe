/// Which pre-tokeniser a tokenizer.json describes.
#pragma once

#include "base/json.hpp"

#include <string>
#include <string_view>

namespace lamella::model::hugging_face {

/// How pieces write a space.
constexpr std::string_view space_mark = "\u2581";

/// How text is cut before byte pairs are merged.
struct word_rules {
  bool byte_level = false;   ///< tokens stand for bytes; else they are text with U+2581 for spaces
  std::string pre;           ///< of byte-level rules: a name that find_pre_tokenizer() knows
  bool marks_spaces = false; ///< a step writes spaces as U+2581
  bool adds_space = false;   ///< before text, where a step says so
  bool adds_space_once = false; ///< only where text begins
};

/// Reads "pre_tokenizer", which may be null. Its regular expressions are compared with those of the
/// rules that the program has, and never run. Throws json_field_error for a step, an option or an
/// expression that is not known.
word_rules read_word_rules(const json_value& pre_tokenizer);

} // namespace lamella::model::hugging_face
