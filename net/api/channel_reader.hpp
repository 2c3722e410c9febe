/// Splits answers that are laid out as messages, each to somebody.
#pragma once

#include "model/chat/reasoning.hpp"
#include "net/api/answer_parts.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// A piece of an answer: reasoning, followed by text; or several such parts.
struct reasoning_piece {
  std::string reasoning, text;
  std::vector<part_end> ends{}; ///< of its parts but the last
};

/// Reads the forms of answers that are more than marks around reasoning (model/chat/reasoning.hpp).
/// Messages of reasoning, or of text, are two line feeds apart. A message to a function is text as
/// the dialect of these models has it, with its header in one order (model/chat/tool_dialect.hpp).
/// What is not laid out so is text. The output depends on the bytes only, not on the pieces in
/// which they arrive.
class channel_reader {
public:
  /// Not of answer_form::marks.
  explicit channel_reader(model::answer_form form) : form_{form} {}

  reasoning_piece feed(std::string_view text);
  /// The answer is complete: returns the held-back rest, but for a header that was cut.
  reasoning_piece finish();

  bool reasons() const { return state_ == state::reasoning; }

private:
  /// A longer header is text.
  static constexpr size_t header_max = 256;
  enum class state : uint8_t { header, reasoning, text, call, behind };

  bool read_header(reasoning_piece& out);
  bool read_body(reasoning_piece& out);
  bool read_behind();
  void begin(state x, reasoning_piece& out);

  model::answer_form form_;
  state state_ = state::header;
  std::string held_; ///< not given out yet
  bool has_reasoning_ = false, has_text_ = false;
};

} // namespace lamella::net
