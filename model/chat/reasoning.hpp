/// How a model sets its reasoning apart from its answer.
#pragma once

#include "model/grammar/grammar.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// How answers are laid out around reasoning and text.
enum class answer_form : uint8_t {
  marks, ///< reasoning between two marks, text behind it
  /// Messages, each with a header that names its channel and whom it is to, as gpt-oss writes them:
  /// <|channel|>analysis<|message|>REASONING<|end|><|start|>assistant<|channel|>final<|message|>TEXT.
  /// A call of a tool is one to it, and the last one.
  channels,
  /// No reasoning, and parts behind ">>>", each of which begins with a line that says whom it is
  /// to: all, or a tool (Functionary 3.2). The prompt ends with the first ">>>".
  recipients
};

/// Reasoning stands between two marks at the beginning of an answer. Empty marks: there is none.
struct reasoning_marks {
  std::string begin, end;
  answer_form form = answer_form::marks;
  bool any() const { return !end.empty(); }
  /// Texts of the form that a vocabulary may have as tokens of their own.
  std::vector<std::string> tokens() const;
};

/// Marks of the families that are known.
const std::vector<reasoning_marks>& known_reasoning_marks();

/// Where the reasoning of an answer begins.
enum class reasoning_start : uint8_t {
  closed, ///< nowhere: the prompt has ended it, or the model has none
  open,   ///< at the first byte of the answer, where that begins with the mark
  begun   ///< before the answer: its mark is the end of the prompt
};

/// The reasoning of one answer.
struct answer_reasoning {
  reasoning_marks marks{};
  reasoning_start start = reasoning_start::closed;
};

/// What the end of a rendered prompt says of it.
reasoning_start reasoning_start_of(std::string_view prompt_end, const reasoning_marks& marks);

/// A text of the answer, behind what says that it is one.
grammar::node_id as_text(grammar& g, const answer_reasoning& x, grammar::node_id text);

/// Reasoning, where there is some, and `answer` behind it and up to two line feeds. `end`: an
/// answer may end within its reasoning. On channels there may be any number of messages before
/// `answer`, which is as_text() or a call.
grammar::node_id behind_reasoning(grammar& g, const answer_reasoning& x, grammar::node_id answer,
                                  std::optional<grammar::node_id> end = {});

} // namespace lamella::model
