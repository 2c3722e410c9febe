/// How a model writes calls of tools in its answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// An answer with calls is: any text, `begin`, calls with `between` between them, `end`. A call is
/// `open`, a JSON object with the name of the tool and its arguments, and `close`:
///
///   {"name": "NAME", "ARGUMENTS_KEY": {...}}
struct tool_dialect {
  std::string begin, between, end;
  std::string open, close;
  std::string arguments_key = "arguments";
  bool many = true;     ///< an answer may have several calls
  bool template_writes; ///< the chat template lays out tools, calls and results by itself
  /// What results begin with where a model may write them itself, behind its calls: there its
  /// answer is over. Empty: none does.
  std::string results{};

  /// What tells a call from text; empty: a call is all of an answer, and text does not begin with
  /// {.
  std::string mark() const { return begin + open; }
  /// Up to the name, and from behind it up to the arguments.
  std::string before_name() const { return open + R"({"name": ")"; }
  std::string before_arguments() const { return R"(", ")" + arguments_key + R"(": )"; }

  /// Texts of its marks that a vocabulary may have as tokens of their own.
  std::vector<std::string> mark_tokens() const;
};

/// The dialect of a call of `name` as a chat template wrote it into `written`: <tool_call> tags
/// (Hermes, Qwen), [TOOL_CALLS] and a list (Mistral), or bare JSON with "parameters" (LLaMA 3).
/// Where it is none of them, or nothing was written: tags, which the prompt has to explain.
tool_dialect tool_dialect_of(std::string_view written, std::string_view name);

} // namespace lamella::model
