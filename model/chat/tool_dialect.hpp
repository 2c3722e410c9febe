/// How a model writes calls of tools in its answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// An answer with calls is: any text, `begin`, calls with `between` between them, `end`. A call is
/// `open`, the name of the tool and its arguments as a JSON object, with fixed texts around them,
/// and `close`. In most families the two are a JSON object themselves:
///
///   {"name": "NAME", "ARGUMENTS_KEY": {...}}
struct tool_dialect {
  /// Within `lead` and `middle`: the number of the call, in digits.
  static constexpr char number = '\x01';

  std::string begin, between, end;
  std::string open, close;
  std::string arguments_key = "arguments";
  bool many = true;     ///< an answer may have several calls
  bool template_writes; ///< the chat template lays out tools, calls and results by itself
  /// What results begin with where a model may write them itself, behind its calls: there its
  /// answer is over. Empty: none does.
  std::string results{};
  std::string lead = R"({"name": ")"; ///< behind `open`, up to the name
  std::string middle{};   ///< from the name to the arguments; empty: as JSON with the key has it
  std::string tail = "}"; ///< behind the arguments, up to `close`

  /// The template takes the arguments of earlier calls as JSON text, and not as an object.
  bool takes_texts = false;
  /// Arguments one by one, instead of a JSON object: a name and a value each, between these. Values
  /// that are texts stand as they are, others as JSON.
  /// With `between` they are a list as in a call of Python, where values are JSON but for True,
  /// False and None; texts are JSON as well, or stand as they are between two `quote`.
  struct parameter_marks {
    std::string before_name, before_value, behind_value;
    std::string between{}, quote{};
    std::string before_other{}; ///< before values that are no texts, where that differs
  };
  std::optional<parameter_marks> parameters{};
  /// Other forms that the model may write a call in instead, each behind the same mark, which this
  /// form does not have. They are told apart by the { that the call begins with or does not.
  std::vector<tool_dialect> also{};
  /// Parameters whose values are texts, as key_of() has them.
  std::vector<std::string> texts{};
  static std::string key_of(std::string_view tool, std::string_view parameter) {
    return std::string{tool} + "\n" + std::string{parameter};
  }

  /// What tells a call from text: what calls begin with, up to the end of the first mark in it, so
  /// that a model that has written that mark writes a call. Empty: a call is all of an answer, and
  /// text does not begin with {.
  std::string mark() const;
  /// From there up to behind the first `open`.
  std::string behind_mark() const { return (begin + open).substr(mark().size()); }
  /// Up to the name, and from behind it up to the arguments.
  std::string before_name() const { return open + lead; }
  std::string before_arguments() const {
    return middle.empty() && !parameters ? R"(", ")" + arguments_key + R"(": )" : middle;
  }

  /// Texts of its marks that a vocabulary may have as tokens of their own.
  std::vector<std::string> mark_tokens() const;
};

/// The dialect of a call of `name` as a chat template wrote it into `written`: one of the forms of
/// docs/models.md. Where it is none of them, or nothing was written: <tool_call> tags, which
/// the prompt has to explain.
tool_dialect tool_dialect_of(std::string_view written, std::string_view name);

} // namespace lamella::model
