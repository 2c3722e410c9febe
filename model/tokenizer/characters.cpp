#include "model/tokenizer/characters.hpp"

#include "base/utf8.hpp"

#include <unicode/uchar.h>

namespace lamella::model {

character_kind kind_of(char32_t c) {
  const auto mask = U_MASK(u_charType(static_cast<UChar32>(c)));
  if (mask & U_GC_L_MASK) return character_kind::letter;
  if (mask & U_GC_N_MASK) return character_kind::number;
  return u_isUWhiteSpace(static_cast<UChar32>(c)) ? character_kind::space : character_kind::other;
}

character character_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  const utf8_unit unit = decode_utf8(text, at);
  if (unit.kind != utf8_unit::state::valid) return {0xFFFD, 1, character_kind::other};
  return {unit.code_point, unit.bytes, kind_of(unit.code_point)};
}

size_t run_end(std::string_view text, size_t at, character_kind is) {
  for (character c = character_at(text, at); c.bytes != 0 && c.is == is; c = character_at(text, at))
    at += c.bytes;
  return at;
}

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

size_t space_end(std::string_view text, size_t at) {
  size_t end = at, last = at;
  for (character c = character_at(text, at); c.bytes != 0 && c.is == character_kind::space;
       c = character_at(text, end)) {
    last = end;
    end += c.bytes;
  }
  return end == text.size() || last == at ? end : last;
}

size_t numbers_end(std::string_view text, size_t at, int most) {
  for (int i = 0; i < most; ++i) {
    const character c = character_at(text, at);
    if (c.bytes == 0 || c.is != character_kind::number) break;
    at += c.bytes;
  }
  return at;
}

size_t last_newline_end(std::string_view text, size_t at) {
  size_t found = at;
  for (character c = character_at(text, at); c.bytes != 0 && c.is == character_kind::space;
       c = character_at(text, at)) {
    at += c.bytes;
    if (is_newline(c)) found = at;
  }
  return found;
}

cases cases_of(char32_t code_point) {
  const auto mask = U_MASK(u_charType(static_cast<UChar32>(code_point)));
  const auto both = mask & (U_GC_LM_MASK | U_GC_LO_MASK | U_GC_M_MASK);
  return {both != 0 || (mask & (U_GC_LU_MASK | U_GC_LT_MASK)) != 0,
          both != 0 || (mask & U_GC_LL_MASK) != 0};
}

} // namespace lamella::model
