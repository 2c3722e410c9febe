/// The tools of a request, and the calls of them in its messages.
#pragma once

#include "base/json_reader.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::net {

struct tool {
  std::string name;
  json_value definition;      ///< {"type":"function","function":{...}}, as it came
  json_value parameters;      ///< schema of the arguments; null: it has none
  std::string schema_field{}; ///< dotted path of `parameters`, for errors
  bool strict =
      false; ///< arguments are constrained to the whole schema, or the request is rejected
};

/// How an answer may use the tools.
struct tool_use {
  enum class choice : uint8_t { none, automatic, required };
  std::vector<tool> tools; ///< those that may be called; empty: `what` is none
  choice what = choice::none;
  bool parallel = true; ///< an answer may have several calls

  bool active() const { return what != choice::none; }
  /// Equal for equivalent uses.
  std::string key() const;
};

/// A call that an assistant's message has, or that an answer gives.
struct tool_call {
  std::string id;
  std::string name;
  std::string arguments; ///< JSON text
};

/// Where the fields of a function stand, in tools and in choices of them.
enum class tool_form : uint8_t {
  nested, ///< {"type":"function","function":{"name":...}}: chats
  flat    ///< {"type":"function","name":...}: responses
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. A choice of one function leaves only
/// that one, to be called once; a choice of allowed tools leaves those. Throws api_error.
tool_use read_tool_use(json_object_reader& body, tool_form form = tool_form::nested);

/// The `name` of a function: 1 to `longest` letters, digits, _, - and full stops.
std::string read_function_name(json_object_reader& function, size_t longest = 64);

/// The definition of a tool as chats have it and templates show it.
json_value function_definition(const std::string& name, const json_value* description,
                               const json_value* parameters, bool strict);

/// Adds a tool; `field`: where it stands. Two tools of one name are refused.
void add_tool(tool_use& use, tool one, const std::string& field);

/// Leaves the tools of these names, which stand at `field`.
void keep_tools(tool_use& use, const std::vector<std::string>& names, const std::string& field);

/// The most tools of a chat, as OpenAI has it, and those of responses and messages.
inline constexpr size_t chat_tools_max = 128, tools_max = 1'024;
inline constexpr size_t calls_max = 128, arguments_bytes_max = 1 << 20;

/// The `tool_calls` of a message, or its one `function_call`, as they were named before; none where
/// there are none.
std::vector<tool_call> read_tool_calls(json_object_reader& message);

} // namespace lamella::net
