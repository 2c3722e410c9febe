#include "model/chat/tool_dialect.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

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

/// JSON objects with name and arguments in a list between two marks.
tool_dialect list_between(const std::string& begin, const std::string& end) {
  return {begin, ", ", end, "", "", "arguments", true, true};
}

/// With other texts around the name and the arguments than those of JSON.
tool_dialect spelt(tool_dialect x, const char* lead, const char* middle, const char* tail) {
  x.lead = lead;
  x.middle = middle;
  x.tail = tail;
  return x;
}

/// With arguments one by one.
tool_dialect marked(tool_dialect x, const char* lead, const char* middle, const char* tail,
                    tool_dialect::parameter_marks marks) {
  x.parameters = std::move(marks);
  return spelt(std::move(x), lead, middle, tail);
}

/// DeepSeek V3.2, whose calls are in `function_calls`, and V4, where they are in `tool_calls`.
tool_dialect dsml(const std::string& calls) {
  return marked({"<｜DSML｜" + calls + ">\n", "\n", "\n</｜DSML｜" + calls + ">",
                 "<｜DSML｜invoke name=\"", "", "", true, true},
                "", "\">\n", "</｜DSML｜invoke>",
                {"<｜DSML｜parameter name=\"", "\" string=\"true\">", "</｜DSML｜parameter>\n", "",
                 "", "\" string=\"false\">"});
}

/// Forms with arguments as a JSON object, by family.
std::vector<tool_dialect> forms_of_objects() {
  const std::string calls = "<｜tool▁calls▁begin｜>", calls_end = "<｜tool▁calls▁end｜>";
  const std::string call = "<｜tool▁call▁begin｜>", call_end = "<｜tool▁call▁end｜>";
  return {list_between("<|tool_call|>[", "]"),                 // Granite 3
          list_between("<|tool_call|>[", "]<|/tool_call|>"),   // Phi 4
          list_between("<TOOLCALL>[", "]</TOOLCALL>"),         // Nemotron
          list_between("<tool_calls>[", "]</tool_calls>"),     // Hunyuan
          list_between("<tool_calls>[\n", "\n]</tool_calls>"), // Jamba
          // MiniMax M1
          {"<tool_calls>\n", "\n", "\n</tool_calls>", "", "", "arguments", true, true},
          // InternLM 2 and 3
          {"", "", "", "<|action_start|><|plugin|>\n", "<|action_end|>", "parameters", false, true},
          // Mistral from 2025 on, Devstral, Magistral
          spelt({"", "", "", "[TOOL_CALLS]", "", "", true, true}, "", "[ARGS]", ""),
          // Functionary 3.2
          spelt({"", "", "", ">>>", "", "", true, true}, "", "\n", ""),
          // Apertus
          spelt({"<|tools_prefix|>[", ", ", "]<|tools_suffix|>", "", "", "", true, true}, "{\"",
                "\": ", "}"),
          // Functionary 3.1, LLaMA 3.1 where its template asks for it
          spelt({"", "", "", "<function=", "</function>", "", true, true}, "", ">", ""),
          // DeepSeek V3 and R1, then V3.1
          spelt({calls, "\n", calls_end, call, call_end, "", true, true}, "function<｜tool▁sep｜>",
                "\n```json\n", "\n```"),
          spelt({calls, "", calls_end, call, call_end, "", true, true}, "", "<｜tool▁sep｜>", ""),
          // Command R7B and A
          spelt({"<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", "", "", "", true, true},
                "{\"tool_call_id\": \"\x01\", \"tool_name\": \"", "\", \"parameters\": ", "}"),
          // Kimi K2
          spelt({"<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>",
                 "<|tool_call_begin|>", "<|tool_call_end|>", "", true, true},
                "functions.", ":\x01<|tool_call_argument_begin|>", "")};
}

/// Forms with arguments one by one, by family.
std::vector<tool_dialect> forms_of_parameters() {
  return {
      // Qwen3 Coder, Qwen 3.5, Nemotron 3
      marked({"", "\n", "", "<tool_call>\n<function=", "\n</tool_call>", "", true, true}, "", ">\n",
             "</function>", {"<parameter=", ">\n", "\n</parameter>\n"}),
      // Seed OSS
      marked({"", "\n", "", "<seed:tool_call>\n<function=", "\n</seed:tool_call>", "", true, true},
             "", ">\n", "</function>", {"<parameter=", ">", "</parameter>\n"}),
      // GLM 4.5, and later ones without line feeds
      marked({"", "\n", "", "<tool_call>", "</tool_call>", "", true, true}, "", "\n", "",
             {"<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"}),
      marked({"", "", "", "<tool_call>", "</tool_call>", "", true, true}, "", "", "",
             {"<arg_key>", "</arg_key><arg_value>", "</arg_value>"}),
      // MiniMax M2
      marked({"<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>", "<invoke name=\"", "", "",
              true, true},
             "", "\">\n", "</invoke>", {"<parameter name=\"", "\">", "</parameter>\n"}),
      dsml("function_calls"), dsml("tool_calls"),
      // LFM2
      marked({"<|tool_call_start|>[", ", ", "]<|tool_call_end|>", "", "", "", true, true}, "", "(",
             ")", {"", "=", "", ", "}),
      // FunctionGemma
      marked({"", "", "", "<start_function_call>", "<end_function_call>", "", true, true},
             "call:", "{", "}", {"", ":", "", ",", "<escape>"}),
      // Gemma 4
      marked({"", "", "", "<|tool_call>", "<tool_call|>", "", true, true}, "call:", "{", "}",
             {"", ":", "", ",", "<|\"|>"})};
}

/// gpt-oss: a message to a function, in the order in which models write its header. Templates write
/// earlier ones in the other order.
std::optional<tool_dialect> on_channels(std::string_view written, const std::string& name) {
  const auto to = "to=functions." + name;
  if (written.find(to + "<|channel|>commentary") == written.npos
      && written.find("<|channel|>commentary " + to) == written.npos)
    return {};
  return spelt({"", "", "", "<|channel|>commentary to=functions.", "", "", false, true}, "",
               " <|constrain|>json<|message|>", "");
}

/// LLaMA 3: JSON alone, or behind a mark, and calls as in Python of the tools it was trained with.
tool_dialect bare_json() {
  tool_dialect x{"", "", "", "", "", "parameters", false, true};
  x.also = {{"", "", "", "<|python_tag|>", "", "parameters", false, true},
            marked({"", "", "", "<|python_tag|>", "", "", false, true}, "", ".call(", ")",
                   {"", "=", "", ", "})};
  return x;
}

/// Forms that templates write and that are no plain tags. A form is told by all of it up to the
/// arguments, so none is taken for another.
std::vector<tool_dialect> forms() {
  auto all = forms_of_objects();
  for (auto& x : forms_of_parameters()) all.push_back(std::move(x));
  return all;
}

/// The length of what `pattern` matches at the beginning of `text`; npos: it does not.
size_t matched(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  for (const char c : pattern) {
    if (c == tool_dialect::number) {
      const auto digits = std::min(text.find_first_not_of("0123456789", at), text.size()) - at;
      if (digits == 0) return text.npos;
      at += digits;
    } else if (at == text.size() || text[at++] != c) {
      return text.npos;
    }
  }
  return at;
}

/// Did the template write a call in that form, and end it so? `call`: up to the arguments.
bool is_written(std::string_view written, const tool_dialect& form, const std::string& name) {
  const auto& marks = form.parameters;
  const auto call = form.begin + form.open + form.lead + name + form.before_arguments()
                    + (marks ? marks->before_name : "{");
  // One argument was written.
  const bool is_list = marks && !marks->between.empty();
  const auto quote = is_list && !marks->quote.empty() ? marks->quote : "\"";
  const auto argument_end = is_list ? quote : marks ? marks->behind_value : "}";
  for (auto at = written.find(call[0]); at != written.npos; at = written.find(call[0], at + 1)) {
    const auto length = matched(written.substr(at), call);
    if (length == written.npos) continue;
    const auto behind = written.substr(at + length);
    auto end = behind.find(argument_end);
    if (is_list && end != behind.npos) {
      if (!behind.substr(0, end).ends_with(marks->before_value)) continue;
      end = behind.find(argument_end, end + argument_end.size());
    }
    const auto last = form.tail + form.close + form.end;
    if (end != behind.npos
        && matched(behind.substr(end + argument_end.size()), last) != written.npos)
      return true;
  }
  return false;
}

} // namespace

std::string tool_dialect::mark() const {
  auto all = begin + open;
  if (!all.starts_with('<') && !all.starts_with('[')) return all;
  const auto last = all.find(all[0] == '<' ? '>' : ']');
  if (last == all.npos || last + 1 == all.size()) return all;
  // gpt-oss's first mark begins other messages too: the channel behind it tells.
  const bool goes_on = std::isalpha(static_cast<unsigned char>(all[last + 1])) != 0;
  return goes_on ? all : all.substr(0, last + 1);
}

std::vector<std::string> tool_dialect::mark_tokens() const {
  std::vector<std::string> tokens;
  auto all = begin + open + lead + middle + tail + close + end + results;
  if (parameters)
    all += parameters->before_name + parameters->before_value + parameters->behind_value
           + parameters->quote;
  for (const auto& x : also) all += x.open;
  for (const auto* text : {"<|channel|>",
                           "<|constrain|>",
                           "<|message|>",
                           "<|python_tag|>",
                           "<|tools_prefix|>",
                           "<|tools_suffix|>",
                           "<|tool_call>",
                           "<tool_call|>",
                           "<|\"|>",
                           "<tool_call>",
                           "</tool_call>",
                           "<tool_response>",
                           "[TOOL_CALLS]",
                           "[ARGS]",
                           "<|tool_call|>",
                           "<|/tool_call|>",
                           "<TOOLCALL>",
                           "</TOOLCALL>",
                           "<tool_calls>",
                           "</tool_calls>",
                           "<|action_start|>",
                           "<|plugin|>",
                           "<|action_end|>",
                           "<｜tool▁calls▁begin｜>",
                           "<｜tool▁calls▁end｜>",
                           "<｜tool▁call▁begin｜>",
                           "<｜tool▁call▁end｜>",
                           "<｜tool▁sep｜>",
                           "｜DSML｜",
                           "<|START_ACTION|>",
                           "<|END_ACTION|>",
                           "<seed:tool_call>",
                           "</seed:tool_call>",
                           "<arg_key>",
                           "</arg_key>",
                           "<arg_value>",
                           "</arg_value>",
                           "<minimax:tool_call>",
                           "</minimax:tool_call>",
                           "<|tool_calls_section_begin|>",
                           "<|tool_calls_section_end|>",
                           "<|tool_call_begin|>",
                           "<|tool_call_argument_begin|>",
                           "<|tool_call_end|>",
                           "<|tool_call_start|>",
                           "<start_function_call>",
                           "<end_function_call>",
                           "<escape>"})
    if (all.find(text) != std::string::npos) tokens.emplace_back(text);
  return tokens;
}

tool_dialect tool_dialect_of(std::string_view written, std::string_view name) {
  // The longest that fits: one may end as another does, and go on.
  std::optional<tool_dialect> found;
  for (auto& form : forms())
    if (is_written(written, form, std::string{name})
        && (!found || form.end.size() > found->end.size()))
      found = std::move(form);
  if (found) return std::move(*found);
  if (auto x = on_channels(written, std::string{name})) return std::move(*x);
  const auto begins = std::string{R"({"name": ")"} + std::string{name} + '"';
  const auto at = written.rfind(begins);
  if (at == written.npos) return tags(false);
  auto before = written.substr(0, at);
  const auto end = before.find_last_not_of(" \n");
  before = before.substr(0, end == before.npos ? 0 : end + 1);
  const auto arguments = written.substr(at + begins.size());
  if (arguments.starts_with(R"(, "parameters": )")) return bare_json();
  if (!arguments.starts_with(R"(, "arguments": )")) return tags(false);
  if (before.ends_with("<tool_call>")) return tags(true);
  if (!before.ends_with('[')) return tags(false);
  before.remove_suffix(1);
  while (before.ends_with(' ')) before.remove_suffix(1);
  if (!before.ends_with("[TOOL_CALLS]")) return tags(false);
  return {"[TOOL_CALLS][", ", ", "]", "", "", "arguments", true, true};
}

} // namespace lamella::model
