/// The texts of the golden tokeniser tests; tokenizer_golden.py makes the same ones.
#pragma once

#include "base/utf8.hpp"
#include "tests/folders.hpp"
#include "tests/random.hpp"

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::tests {

/// A line of tokenizer_fragments.txt: \n \r \t \\ and \u{HEX} are escapes.
inline std::string unescape(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] != '\\') {
      out += line[i++];
      continue;
    }
    const char kind = line.at(i + 1);
    if (kind == 'u') {
      const size_t end = line.find('}', i);
      append_utf8(out,
                  static_cast<char32_t>(std::stoul(line.substr(i + 3, end - i - 3), nullptr, 16)));
      i = end + 1;
    } else {
      out += kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind == 't' ? '\t' : '\\';
      i += 2;
    }
  }
  return out;
}

inline std::vector<std::string> read_fragments() {
  std::ifstream in(std::string{lamella::tests::source_folder}
                   + "/tests/golden/tokenizer_fragments.txt");
  if (!in) throw std::runtime_error("tests/golden/tokenizer_fragments.txt cannot be opened");
  std::vector<std::string> table;
  for (std::string line; std::getline(in, line);) table.push_back(unescape(line));
  return table;
}

/// Text number `number`: up to 24 pieces of fragments, repeated fragments, random characters of one
/// script, and random ASCII.
inline std::string make_text(uint64_t number, const std::vector<std::string>& table) {
  static constexpr struct {
    char32_t first, last;
  } ranges[]{{0x00, 0x1F},       {0x20, 0x7E},      {0x7F, 0xFF},       {0x100, 0x17F},
             {0x300, 0x36F},     {0x391, 0x3A1},    {0x3B1, 0x3C9},     {0x410, 0x44F},
             {0x5D0, 0x5EA},     {0x620, 0x669},    {0x905, 0x939},     {0x93E, 0x94D},
             {0xE01, 0xE3A},     {0x1100, 0x1112},  {0x2000, 0x200F},   {0x2010, 0x2027},
             {0x2070, 0x2071},   {0x2150, 0x2188},  {0x2190, 0x21FF},   {0x2460, 0x24FF},
             {0x2600, 0x26FF},   {0x3041, 0x3096},  {0x30A1, 0x30FA},   {0x4E00, 0x9FA5},
             {0xAC00, 0xD7A3},   {0xFF01, 0xFF5E},  {0x1D400, 0x1D454}, {0x1F300, 0x1F5FF},
             {0x1F600, 0x1F64F}, {0x20000, 0x2A6D6}};
  splitmix random(number);
  std::string text;
  const uint64_t pieces = 1 + random.below(24);
  for (uint64_t p = 0; p < pieces; ++p) {
    const uint64_t choice = random.below(8);
    if (choice < 5) {
      text += table[random.below(table.size())];
    } else if (choice == 5) {
      const auto& range = ranges[random.below(std::size(ranges))];
      for (uint64_t count = 1 + random.below(6); count > 0; --count)
        append_utf8(text, range.first
                              + static_cast<char32_t>(random.below(range.last - range.first + 1)));
    } else if (choice == 6) {
      const std::string& piece = table[random.below(table.size())];
      for (uint64_t count = random.below(40); count > 0; --count) text += piece;
    } else {
      for (uint64_t count = random.below(12); count > 0; --count)
        text += static_cast<char>(0x20 + random.below(0x5F));
    }
  }
  return text;
}

/// Text number `number` of those about upper and lower case: random ones of few characters, with
/// letters of both cases, of the third, and of none, and marks.
inline std::string make_cased_text(uint64_t number) {
  static constexpr std::u32string_view characters =
      U"aAzZsStTrReElLmMdD\u01C5\u02B0\u00AA\u4E00\u0301\u093E\u017F'  \n\r/.12\u0661";
  splitmix random(number);
  std::string text;
  for (uint64_t count = 1 + random.below(24); count > 0; --count)
    append_utf8(text, characters[random.below(characters.size())]);
  return text;
}

} // namespace lamella::tests
