/// How a model sets its reasoning apart from its answer.
#pragma once

#include "model/grammar/grammar.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// Reasoning stands between two marks at the beginning of an answer. Empty marks: there is none.
struct reasoning_marks {
  std::string begin, end;
  bool any() const { return !end.empty(); }
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

/// Reasoning, where there is some, and `answer` behind it and up to two line feeds. `end`: an
/// answer may end within its reasoning.
grammar::node_id behind_reasoning(grammar& g, const answer_reasoning& x, grammar::node_id answer,
                                  std::optional<grammar::node_id> end = {});

} // namespace lamella::model
