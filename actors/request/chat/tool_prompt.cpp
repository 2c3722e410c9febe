#include "actors/request/chat/tool_prompt.hpp"

#include "base/json_writer.hpp"

namespace lamella::actors {

namespace {

std::string call_text(const std::string& name, const std::string& arguments,
                      const model::tool_dialect& dialect) {
  return dialect.before_name() + name + dialect.before_arguments() + arguments + dialect.tail
         + dialect.close;
}

std::string explanation(const net::tool_use& tools, const model::tool_dialect& dialect) {
  std::string text = "These functions can be called, one JSON object per line:\n<tools>\n";
  for (const auto& x : tools.tools) text += to_json(x.definition) + "\n";
  text += "</tools>\nTo call a function, answer with its name and its arguments:\n"
          + call_text("NAME", "{...}", dialect)
          + "\nResults come between <tool_response> and </tool_response>.";
  if (tools.what == net::tool_use::choice::automatic)
    text += " Where no function helps, answer in plain words.";
  return text;
}

} // namespace

std::vector<net::chat_message> told_as_text(std::vector<net::chat_message> messages,
                                            const net::tool_use& tools,
                                            const model::tool_dialect& dialect) {
  std::vector<net::chat_message> result;
  for (auto& m : messages) {
    if (!m.tool_calls.empty() || m.role == "tool") m.parts.clear(); // told by `content`
    for (const auto& call : m.tool_calls)
      m.content += (m.content.empty() ? "" : "\n")
                   + call_text(call.name, call.arguments.empty() ? "{}" : call.arguments, dialect);
    m.tool_calls.clear();
    if (m.role != "tool") {
      result.push_back(std::move(m));
      continue;
    }
    const auto text = "<tool_response>\n" + m.content + "\n</tool_response>";
    // Results of one answer's calls are one message: many templates want turns to alternate.
    if (!result.empty() && result.back().role == "user"
        && result.back().content.ends_with("</tool_response>"))
      result.back().content += "\n" + text;
    else
      result.push_back({"user", text, {}});
  }
  if (!tools.active()) return result;
  const bool has_system =
      !result.empty() && (result.front().role == "system" || result.front().role == "developer");
  if (!has_system) result.insert(result.begin(), net::chat_message{"system", {}, {}});
  result.front().parts.clear();
  auto& system = result.front().content;
  system += (system.empty() ? "" : "\n\n") + explanation(tools, dialect);
  return result;
}

} // namespace lamella::actors
