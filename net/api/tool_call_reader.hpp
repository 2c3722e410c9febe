/// Finds tool calls in an answer that arrives in pieces.
#pragma once

#include "model/chat/tool_dialect.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// New data of a call.
struct tool_call_piece {
  uint32_t call = 0;     ///< 0 for the answer's first
  std::string name;      ///< not empty where the call begins
  std::string arguments; ///< more of its arguments' JSON text
};

/// A piece of an answer: text, followed by calls.
struct answer_piece {
  std::string text;
  std::vector<tool_call_piece> calls;
  bool empty() const { return text.empty() && calls.empty(); }
};

/// Reads what a grammar of the dialect allows (model/chat/tool_grammar.hpp), so calls are laid
/// out as it says. White space before a call belongs to neither, and text after a call that is not
/// another call is dropped. The output depends on the bytes only, not on the pieces in which they
/// arrive.
class tool_call_reader {
public:
  explicit tool_call_reader(model::tool_dialect dialect);

  answer_piece feed(std::string_view text);
  /// The answer is complete: returns the held-back rest.
  answer_piece finish();

  /// Number of started calls.
  uint32_t calls() const { return calls_; }

  /// Whether these, as the next bytes, are text and not part of a call.
  bool reads_as_text(std::string_view next) const;

private:
  enum class state : uint8_t { text, form, name, arguments, parameter, value, behind_call };

  std::string mark() const;
  bool read_text(answer_piece& out, bool over);
  bool read_form();
  bool read_name(answer_piece& out);
  bool read_arguments(answer_piece& out);
  bool read_parameter(answer_piece& out);
  bool read_value(answer_piece& out);
  bool read_listed_value(answer_piece& out);
  bool read_quoted(answer_piece& out);
  void give_word(answer_piece& out);
  void give_arguments(answer_piece& out, std::string_view json);
  bool read_behind_call();
  void give_text(answer_piece& out, size_t bytes);

  model::tool_dialect dialect_;
  std::string held_; ///< not given out yet
  state state_ = state::text;
  bool free_ = false;    ///< text that no call can follow any more
  bool is_text_ = false; ///< without a mark: the first character was none of a call
  uint32_t calls_ = 0;
  std::string behind_mark_; ///< what the first call has before its lead
  std::string name_;        ///< of the call
  bool in_text_ = false;    ///< the value is a text
  bool is_begun_ = false;   ///< the value of a list is
  std::string word_;        ///< of letters, at the end of what was read of it
  bool is_first_ = false;   ///< there is no parameter yet
  // Within arguments:
  uint32_t depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

} // namespace lamella::net
