#include "model/tool_dialect.hpp"

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

tool_dialect tool_dialect_of(std::string_view source) {
  const auto has = [&](std::string_view words) { return source.find(words) != source.npos; };
  if (!has("tools")) return tags(false);
  if (has("[TOOL_CALLS]")) return {"[TOOL_CALLS][", ", ", "]", "", "", "arguments", true, true};
  if (has("<tool_call>")) return tags(true);
  if (has("ipython")) return {"", "", "", "", "", "parameters", false, true};
  return tags(true);
}

} // namespace lamella::model
