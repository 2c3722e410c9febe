#include "model/pre_tokenizer.hpp"

#include "model/utf8.hpp"

#include <array>
#include <cstdint>
#include <unicode/uchar.h>

namespace lamella::model {

namespace {

/// The classes that the rules tell apart; `other` is everything else (punctuation, marks,
/// controls).
enum class kind : uint8_t { letter, number, space, other };

struct character {
  char32_t code_point = 0;
  uint8_t bytes = 0; ///< 0 at the end of the text
  kind is = kind::other;
};

kind classify(char32_t c) {
  const auto mask = U_MASK(u_charType(static_cast<UChar32>(c)));
  if (mask & U_GC_L_MASK) return kind::letter;
  if (mask & U_GC_N_MASK) return kind::number;
  return u_isUWhiteSpace(static_cast<UChar32>(c)) ? kind::space : kind::other;
}

character character_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  const utf8_unit unit = decode_utf8(text, at);
  if (unit.kind != utf8_unit::state::valid) return {0xFFFD, 1, kind::other};
  return {unit.code_point, unit.bytes, classify(unit.code_point)};
}

bool is_newline(const character& c) { return c.code_point == '\n' || c.code_point == '\r'; }

/// End of the run of characters of class `is` that begins at `at`.
size_t run_end(std::string_view text, size_t at, kind is) {
  for (character c = character_at(text, at); c.bytes != 0 && c.is == is; c = character_at(text, at))
    at += c.bytes;
  return at;
}

/// Length of an English contraction ('s 't 're 've 'm 'll 'd) at `at`, or 0. Without regard to
/// case, the long s (U+017F) is an s.
size_t contraction(std::string_view text, size_t at, bool any_case) {
  if (text[at] != '\'') return 0;
  const auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  if (first == 'l' && second == 'l') return 3;
  if (any_case && text.substr(at + 1).starts_with("\u017F")) return 3;
  return 0;
}

/// White space at `at`: all of the run if nothing follows it; else all but its last character,
/// which may belong to the next word; but at least one character.
size_t space_end(std::string_view text, size_t at) {
  size_t end = at, last = at;
  for (character c = character_at(text, at); c.bytes != 0 && c.is == kind::space;
       c = character_at(text, end)) {
    last = end;
    end += c.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

/// GPT-2: contractions; letters, numbers or other characters with at most one space before them;
/// white space.
size_t gpt2_word_end(std::string_view text, size_t at) {
  if (const size_t bytes = contraction(text, at, false)) return at + bytes;
  const size_t begin = text[at] == ' ' ? at + 1 : at;
  const character first = character_at(text, begin);
  if (first.bytes != 0 && first.is != kind::space) return run_end(text, begin, first.is);
  return space_end(text, at);
}

void split_gpt2(std::string_view text, std::vector<size_t>& ends) {
  for (size_t at = 0; at < text.size();) {
    at = gpt2_word_end(text, at);
    ends.push_back(at);
  }
}

/// SmolLM2: every number character is a word; what is between them is cut as by GPT-2.
void split_smollm(std::string_view text, std::vector<size_t>& ends) {
  const auto cut = [&](size_t begin, size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    for (size_t at = 0; at < part.size();) {
      at = gpt2_word_end(part, at);
      ends.push_back(begin + at);
    }
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const character c = character_at(text, at);
    if (c.is == kind::number) {
      cut(begin, at);
      begin = at + c.bytes;
      ends.push_back(begin);
    }
    at += c.bytes;
  }
  cut(begin, text.size());
}

/// End of at most three numbers.
size_t three_numbers_end(std::string_view text, size_t at) {
  for (int i = 0; i < 3; ++i) {
    const character c = character_at(text, at);
    if (c.bytes == 0 || c.is != kind::number) break;
    at += c.bytes;
  }
  return at;
}

/// End of the last newline in the run of white space at `at`; `at` if the run has none.
size_t last_newline_end(std::string_view text, size_t at) {
  size_t found = at;
  for (character c = character_at(text, at); c.bytes != 0 && c.is == kind::space;
       c = character_at(text, at)) {
    at += c.bytes;
    if (is_newline(c)) found = at;
  }
  return found;
}

/// LLaMA-3: contractions in any case; letters with at most one character before them that is no
/// letter, number or newline; one to three numbers; other characters with at most one space before
/// and any newlines after them; white space through its last newline; white space.
size_t llama3_word_end(std::string_view text, size_t at) {
  if (const size_t bytes = contraction(text, at, true)) return at + bytes;
  const character first = character_at(text, at);
  const character second = character_at(text, at + first.bytes);
  if (first.is == kind::letter) return run_end(text, at, kind::letter);
  if (first.is == kind::number) return three_numbers_end(text, at);
  if (!is_newline(first) && second.bytes != 0 && second.is == kind::letter)
    return run_end(text, at + first.bytes, kind::letter);
  const bool spaced = first.code_point == ' ' && second.bytes != 0 && second.is == kind::other;
  if (spaced || first.is == kind::other) {
    size_t end = run_end(text, spaced ? at + 1 : at, kind::other);
    while (end < text.size() && (text[end] == '\n' || text[end] == '\r')) ++end;
    return end;
  }
  const size_t end = last_newline_end(text, at);
  return end != at ? end : space_end(text, at);
}

void split_llama3(std::string_view text, std::vector<size_t>& ends) {
  for (size_t at = 0; at < text.size();) {
    at = llama3_word_end(text, at);
    ends.push_back(at);
  }
}

/// Further families are further lines.
constexpr std::array<pre_tokenizer, 7> known{{
    {"gpt-2", split_gpt2, false, false},
    {"default", split_gpt2, false, false},
    {"smollm", split_smollm, false, false},
    {"starcoder", split_smollm, false, false},
    {"llama-bpe", split_llama3, true, true},
    {"llama3", split_llama3, true, true},
    {"llama-v3", split_llama3, true, true},
}};

} // namespace

const pre_tokenizer* find_pre_tokenizer(std::string_view name) {
  for (const pre_tokenizer& each : known)
    if (each.name == name || (name.empty() && each.name == "default")) return &each;
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const pre_tokenizer& each : known)
    names += (names.empty() ? "" : " ") + std::string(each.name);
  return names;
}

} // namespace lamella::model
