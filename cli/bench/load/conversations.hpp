/// Questions and answers of conversations, from a file of the ShareGPT kind.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

/// A question, and its answer: a text, or the number of its tokens.
struct conversation_turn {
  std::string question;
  std::string answer;
  std::optional<uint32_t> output_tokens;
};

/// One turn at least, in their order.
using conversation = std::vector<conversation_turn>;

/// Reads one conversation after the other, so that the memory does not grow with the file. The file
/// is a JSON list of objects, or objects one after the other (JSON lines). An object has
/// `conversations` (turns with `from` and `value`), `messages` (with `role` and `content`), or
/// `prompt` (or `text`) with `output_tokens` (or `max_tokens`, `output_tokens_count`) or
/// `completion` (or `output`).
class conversation_reader {
public:
  /// Reads up to the first object; later, no more than `turns_max` turns of a conversation. Throws
  /// table_error with the line.
  explicit conversation_reader(std::istream& in, size_t turns_max = 1);

  /// The next one that has a question and an answer, with the turns up to one that lacks either;
  /// nothing at the end. Throws table_error with the line where the file is cut off, is no JSON, or
  /// has an object of another form.
  std::optional<conversation> next();

  /// Objects that had no question with an answer behind it.
  uint64_t passed_over() const { return passed_over_; }

private:
  int get();
  int skip_space();
  /// The text of the next object; false at the end.
  bool take_object(std::string& text);

  std::streambuf& in_;
  const size_t turns_max_;
  bool list_ = false, first_ = true;
  size_t line_ = 1, begun_ = 1;
  uint64_t passed_over_ = 0;
};

} // namespace lamella::cli
