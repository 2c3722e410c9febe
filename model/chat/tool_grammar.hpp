/// Answers that may or must call tools, as grammars.
#pragma once

#include "base/json.hpp"
#include "model/chat/reasoning.hpp"
#include "model/chat/tool_dialect.hpp"
#include "model/grammar/grammar.hpp"

#include <span>
#include <string>
#include <vector>

namespace lamella::model {

/// A tool and the arguments that it takes: always an object, whatever else their schema takes.
struct tool_signature {
  std::string name;
  const json_value* parameters = nullptr; ///< their schema; null: there are none
  std::string pointer{};                  ///< of the schema, for errors
  /// Schemas beyond what a grammar can promise are errors; else such arguments are any object.
  bool strict = false;
};

/// Parameters whose values are texts, as `texts` of a dialect has them.
std::vector<std::string> text_parameters(std::span<const tool_signature> tools);

/// How many calls an answer may have.
enum class tool_calls : uint8_t { one, many };

/// Calls of these tools, one at least, as the dialect writes them. Throws json_schema_error, also
/// for a schema that takes no object. Where the prompt ends with the first mark (`reasoning`), they
/// begin behind it.
grammar::node_id tool_calls_grammar(grammar& g, std::span<const tool_signature> tools,
                                    const tool_dialect& dialect, tool_calls how_many,
                                    grammar::node_id next, const answer_reasoning& reasoning = {});

/// Any text, and calls behind it or none. `calls` makes what follows `next`: all calls of an
/// answer. Where marks tell calls from text, what comes behind a mark is a call. What looks like
/// calls within the reasoning is none; reasoning that is open is told apart in dialects with marks.
/// Text and calls are laid out as the form of `reasoning` has them.
grammar::node_id text_or_tool_calls(grammar& g, std::span<const tool_signature> tools,
                                    const tool_dialect& dialect, tool_calls how_many,
                                    grammar::node_id next, const answer_reasoning& reasoning = {});

} // namespace lamella::model
