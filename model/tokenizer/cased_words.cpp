#include "model/tokenizer/cased_words.hpp"

#include "model/tokenizer/characters.hpp"

namespace lamella::model {

namespace {

/// End of the letters and marks from `at` on that the rule takes: all that may be upper case, and
/// then all that may be lower case, of which there must be one. The last of the first part may have
/// to be it: then the word ends behind the last that may be either. `at` if there is none.
size_t cased_end(std::string_view text, size_t at) {
  size_t end = at, either_end = at;
  character c = character_at(text, end);
  for (cases x = cases_of(c.code_point); c.bytes != 0 && x.upper; x = cases_of(c.code_point)) {
    end += c.bytes;
    if (x.lower) either_end = end;
    c = character_at(text, end);
  }
  if (c.bytes == 0 || !cases_of(c.code_point).lower) return either_end;
  for (; c.bytes != 0 && cases_of(c.code_point).lower; c = character_at(text, end)) end += c.bytes;
  return end;
}

/// End of the letters and marks from `at` on that may be upper case.
size_t upper_end(std::string_view text, size_t at) {
  for (character c = character_at(text, at); c.bytes != 0 && cases_of(c.code_point).upper;
       c = character_at(text, at))
    at += c.bytes;
  return at;
}

/// End of a word of letters and marks with at most one other character before them, or `at`. A mark
/// may be that character or belong to the word: the former is tried first.
size_t letters_end(std::string_view text, size_t at) {
  const character first = character_at(text, at);
  const bool may_lead = first.is != character_kind::letter && first.is != character_kind::number
                        && !is_newline(first);
  const size_t behind = at + first.bytes;
  for (const auto end_of : {cased_end, upper_end}) {
    if (may_lead)
      if (const size_t end = end_of(text, behind); end != behind) return end;
    if (const size_t end = end_of(text, at); end != at) return end;
  }
  return at;
}

size_t word_end(std::string_view text, size_t at, bool contractions, int numbers) {
  if (const size_t end = letters_end(text, at); end != at)
    return contractions && end != text.size() ? end + contraction(text, end, true) : end;
  const character first = character_at(text, at);
  if (first.is == character_kind::number) return numbers_end(text, at, numbers);
  const character second = character_at(text, at + first.bytes);
  const bool spaced =
      first.code_point == ' ' && second.bytes != 0 && second.is == character_kind::other;
  if (spaced || first.is == character_kind::other) {
    size_t end = run_end(text, spaced ? at + 1 : at, character_kind::other);
    while (end < text.size() && (text[end] == '\n' || text[end] == '\r' || text[end] == '/')) ++end;
    return end;
  }
  const size_t end = last_newline_end(text, at);
  return end != at ? end : space_end(text, at);
}

void split(std::string_view text, std::vector<size_t>& ends, bool contractions, int numbers) {
  for (size_t at = 0; at < text.size();) {
    at = word_end(text, at, contractions, numbers);
    ends.push_back(at);
  }
}

} // namespace

void split_gpt_4o(std::string_view text, std::vector<size_t>& ends) { split(text, ends, true, 3); }
void split_tekken(std::string_view text, std::vector<size_t>& ends) { split(text, ends, false, 1); }

} // namespace lamella::model
