/// Answers in which reasoning follows text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace lamella::net {

/// White space between the parts of an answer, which belongs to none of them.
constexpr std::string_view answer_blanks = " \n\t\r";

/// How far the reasoning and the text of an answer had come where more reasoning followed the text.
struct part_end {
  size_t reasoning = 0, text = 0;
};

/// A part of an answer: reasoning, followed by text.
struct answer_part {
  std::string_view reasoning, text;
};

/// The parts in their order: a single one, where no reasoning follows text.
inline std::vector<answer_part> parts_of(std::string_view reasoning, std::string_view text,
                                         std::span<const part_end> ends) {
  std::vector<answer_part> parts;
  part_end from;
  for (const auto& end : ends) {
    parts.push_back({reasoning.substr(from.reasoning, end.reasoning - from.reasoning),
                     text.substr(from.text, end.text - from.text)});
    from = end;
  }
  parts.push_back({reasoning.substr(from.reasoning), text.substr(from.text)});
  return parts;
}

/// Without the line feeds that keep it apart from what came before it of its kind.
inline std::string_view without_gap(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

} // namespace lamella::net
