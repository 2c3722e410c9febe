#include "model/chat/tool_dialect.hpp"

namespace lamella::model {

namespace {

tool_dialect tags(bool template_writes) {
  return {"",
          "\n",
          "",
          "<tool_call>\n",
          "\n</tool_call>",
          "arguments",
          true,
          template_writes,
          "<tool_response>"};
}

} // namespace

std::vector<std::string> tool_dialect::mark_tokens() const {
  std::vector<std::string> tokens;
  for (const auto* text : {"<tool_call>", "</tool_call>", "<tool_response>", "[TOOL_CALLS]"})
    if ((mark() + close + results).find(text) != std::string::npos) tokens.emplace_back(text);
  return tokens;
}

tool_dialect tool_dialect_of(std::string_view written, std::string_view name) {
  const auto begins = std::string{R"({"name": ")"} + std::string{name} + '"';
  const auto at = written.rfind(begins);
  if (at == written.npos) return tags(false);
  auto before = written.substr(0, at);
  const auto end = before.find_last_not_of(" \n");
  before = before.substr(0, end == before.npos ? 0 : end + 1);
  const auto arguments = written.substr(at + begins.size());
  if (arguments.starts_with(R"(, "parameters": )"))
    return {"", "", "", "", "", "parameters", false, true};
  if (!arguments.starts_with(R"(, "arguments": )")) return tags(false);
  if (before.ends_with("<tool_call>")) return tags(true);
  if (!before.ends_with('[')) return tags(false);
  before.remove_suffix(1);
  while (before.ends_with(' ')) before.remove_suffix(1);
  if (!before.ends_with("[TOOL_CALLS]")) return tags(false);
  return {"[TOOL_CALLS][", ", ", "]", "", "", "arguments", true, true};
}

} // namespace lamella::model
