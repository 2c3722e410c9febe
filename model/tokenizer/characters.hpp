/// What the rules of pre-tokenisers tell apart: the character at a place, and runs of a kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamella::model {

/// Unicode's classes as far as the rules name them; `other` is everything else (punctuation, marks,
/// controls).
enum class character_kind : uint8_t { letter, number, space, other };

/// Of a code point below 0x110000.
character_kind kind_of(char32_t code_point);

struct character {
  char32_t code_point = 0;
  uint8_t bytes = 0; ///< 0 at the end of the text
  character_kind is = character_kind::other;
};

/// A byte that is not part of valid UTF-8 counts as a character of kind `other`.
character character_at(std::string_view text, size_t at);

inline bool is_newline(const character& c) { return c.code_point == '\n' || c.code_point == '\r'; }

/// End of the run of characters of class `is` that begins at `at`.
size_t run_end(std::string_view text, size_t at, character_kind is);

/// Length of an English contraction ('s 't 're 've 'm 'll 'd) at `at`, or 0. Without regard to
/// case, the long s (U+017F) is an s.
size_t contraction(std::string_view text, size_t at, bool any_case);

/// End of at most `most` numbers.
size_t numbers_end(std::string_view text, size_t at, int most);

/// White space at `at`: all of the run if nothing follows it; else all but its last character,
/// which may belong to the next word; but at least one character.
size_t space_end(std::string_view text, size_t at);

/// End of the last newline in the run of white space at `at`; `at` if the run has none.
size_t last_newline_end(std::string_view text, size_t at);

/// May a letter be in the first part of a word like "HTTPServer", in which letters are upper case,
/// and may it be in the second, in which they are lower case? Those without case, and marks, may be
/// in both.
struct cases {
  bool upper = false, lower = false;
};
cases cases_of(char32_t code_point);

} // namespace lamella::model
