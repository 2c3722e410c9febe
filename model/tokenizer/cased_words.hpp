/// Cutting text into words that end where lower case turns to upper case: "HTTPServer" is one, and
/// "camelCase" two.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace lamella::model {

/// The rules of GPT-4o and of Mistral's Tekken, as pre_tokenizer::split says. Both: letters and
/// marks with at most one character before them that is no letter, number or newline, first those
/// that may be upper case and then those that may be lower case; other characters with at most one
/// space before and any newlines or slashes after them; white space through its last newline; white
/// space. GPT-4o takes an English contraction in any case to the word before it, and up to three
/// numbers together; Tekken takes one.
void split_gpt_4o(std::string_view text, std::vector<size_t>& ends);
void split_tekken(std::string_view text, std::vector<size_t>& ends);

} // namespace lamella::model
