#include "base/utf8.hpp"

#include <doctest/doctest.h>

using namespace lamella;

TEST_CASE("every code point is written and read again") {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    const utf8_unit unit = decode_utf8(text, 0);
    if (unit.kind != utf8_unit::state::valid || unit.code_point != c || unit.bytes != text.size()) {
      CAPTURE(static_cast<uint32_t>(c));
      FAIL("differs");
    }
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const utf8_unit part = decode_utf8(std::string_view(text).substr(0, cut), 0);
      if (part.kind != utf8_unit::state::unfinished || part.bytes != cut) FAIL("not unfinished");
    }
  }
}

TEST_CASE("of all sequences of two bytes just the legal ones are valid") {
  size_t valid = 0;
  for (unsigned first = 0x80; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const char text[]{static_cast<char>(first), static_cast<char>(second)};
      valid += decode_utf8({text, 2}, 0).kind == utf8_unit::state::valid;
    }
  CHECK(valid == (0xDF - 0xC2 + 1) * 64);
}
