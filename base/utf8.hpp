/// Strict UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lamella {

/// What lies at one place of a text.
struct utf8_unit {
  enum class state : uint8_t {
    valid,     ///< a code point
    invalid,   ///< no sequence begins like this
    unfinished ///< a sequence begins, and the text ends within it
  };
  char32_t code_point = 0xFFFD;
  uint8_t bytes = 1; ///< of the code point, or of the longest beginning of a sequence (at least 1)
  state kind = state::invalid;
};

/// Decodes at `at` < text.size(). Overlong forms, surrogates and values over 0x10FFFF are invalid.
constexpr utf8_unit decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  if (lead < 0x80) return {lead, 1, utf8_unit::state::valid};
  unsigned length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0) return {};
  // The second byte excludes overlong forms, surrogates and what is beyond Unicode.
  unsigned low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  char32_t code_point = lead & (0x7Fu >> length);
  for (unsigned i = 1; i < length; ++i) {
    if (at + i == text.size())
      return {0xFFFD, static_cast<uint8_t>(i), utf8_unit::state::unfinished};
    const unsigned next = byte(at + i);
    if (next < low || next > high)
      return {0xFFFD, static_cast<uint8_t>(i), utf8_unit::state::invalid};
    low = 0x80;
    high = 0xBF;
    code_point = code_point << 6 | (next & 0x3F);
  }
  return {code_point, static_cast<uint8_t>(length), utf8_unit::state::valid};
}

/// How many code points valid UTF-8 has. O(bytes).
constexpr size_t code_points(std::string_view utf8) {
  size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

/// Appends a code point, which must not be a surrogate or over 0x10FFFF.
inline void append_utf8(std::string& text, char32_t c) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

} // namespace lamella
