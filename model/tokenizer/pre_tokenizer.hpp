/// Cutting text into the words within which byte pairs are merged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// The rules that one family of models was trained with. The families publish their rules as
/// regular expressions; here each is an iterative scanner of linear cost, since a backtracking
/// engine can be brought to overflow its stack by a long text.
///
/// A byte that is not part of valid UTF-8 counts as a character that is neither letter, number nor
/// white space.
struct pre_tokenizer {
  std::string_view name; ///< as model files call it
  /// Appends the end of every word of `text`, ascending; the last one is text.size(). No word is
  /// empty. Where a rule looks ahead, the end of `text` is the end of everything.
  void (*split)(std::string_view text, std::vector<size_t>& ends);
  /// Is a word that is in the vocabulary taken at once, without merging towards it?
  bool whole_words;
  /// Does a prompt begin with the beginning-of-text token where the file does not say?
  bool adds_bos;
};

/// The pre-tokeniser of this name, or nullptr. The empty name and "default" mean GPT-2's.
const pre_tokenizer* find_pre_tokenizer(std::string_view name);

/// The names that find_pre_tokenizer() knows, for messages.
std::string pre_tokenizer_names();

} // namespace lamella::model
