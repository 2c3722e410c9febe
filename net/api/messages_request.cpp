#include "net/api/messages_request.hpp"

#include "base/json_writer.hpp"
#include "net/api/api_fields.hpp"
#include "net/api/api_request.hpp"
#include "net/api/reasoning_switches.hpp"

#include <array>

namespace lamella::net {

namespace {

constexpr size_t blocks_max = 1'024, name_bytes_max = 128;

constexpr unsupported_field unsupported[] = {
    {"prompt_logprobs", "false"},
    {"container", ""},
    {"mcp_servers", "[]"},
    {"n", "1"},
    {"chat_template", ""},
    {"add_generation_prompt", "true"},
    {"continue_final_message", "false"},
    {"add_special_tokens", "false"},
};

/// Of the published schema, and without effect here: prefixes of prompts are cached without being
/// marked, and the model knows no effort.
constexpr const char* messages_without_effect[] = {
    "cache_control", "inference_geo", "speed", "user_profile_id",
    "workspace_id",  "diagnostics",   "betas"};

[[noreturn]] void refuse_block(json_object_reader& block, const std::string& type,
                               const std::string& known) {
  throw unsupported_parameter(block.path("type"), block.path("type") + " is "
                                                      + to_json(json_value(type))
                                                      + ": this server takes " + known);
}

std::string text_of_block(json_object_reader& block) {
  for (const char* name : {"cache_control", "citations"}) block.find(name);
  return block.required_string("text");
}

void add_text(chat_message& to, std::string text) {
  to.content += (to.parts.empty() ? "" : "\n") + text;
  to.parts.push_back(std::move(text));
}

/// A string, or an array of blocks of text.
void read_texts(const json_value& value, const std::string& path, const json_object_reader& outer,
                chat_message& to) {
  if (const auto* text = value.get_if<std::string>()) {
    to.content = *text;
    return;
  }
  if (value.get_if<json_value::array>() == nullptr)
    throw invalid_value(path, path + " must be a string or an array of text blocks, not "
                                  + std::string(value.kind()));
  const auto& blocks = json_items(value, path, {0, blocks_max});
  for (size_t i = 0; i < blocks.size(); ++i) {
    json_object_reader block(blocks[i], json_index(path, i), outer);
    const auto type = block.required_string("type", {1, 64});
    if (type != "text") refuse_block(block, type, "text here");
    add_text(to, text_of_block(block));
  }
}

/// The messages of one turn, in the order of its blocks.
class turn_reader {
public:
  turn_reader(std::string role, std::vector<chat_message>& to) : role_{std::move(role)}, to_{to} {}

  void read(json_object_reader& item) {
    const auto& content = item.require("content");
    const auto path = item.path("content");
    if (content.get_if<std::string>() != nullptr || role_ == "system") {
      read_texts(content, path, item, current());
      return;
    }
    if (content.get_if<json_value::array>() == nullptr)
      throw invalid_value(path, path + " must be a string or an array of blocks, not "
                                    + std::string(content.kind()));
    const auto& blocks = json_items(content, path, {0, blocks_max});
    for (size_t i = 0; i < blocks.size(); ++i) {
      json_object_reader block(blocks[i], json_index(path, i), item);
      read_block(block);
    }
    if (to_.size() == first_) current(); // a turn that says nothing is a turn
  }

private:
  /// The message of this role that the next block belongs to.
  chat_message& current() {
    if (to_.size() == first_ || to_.back().role == "tool") to_.push_back({role_, {}, {}});
    return to_.back();
  }

  void read_block(json_object_reader& block) {
    const auto type = block.required_string("type", {1, 64});
    block.find("cache_control");
    const bool said = role_ == "assistant";
    if (type == "text")
      add_text(current(), text_of_block(block));
    else if (said && type == "tool_use")
      read_call(block);
    else if (said && type == "thinking")
      read_thinking(block);
    else if (said && type == "redacted_thinking")
      block.find("data"); // by others, who alone can read it
    else if (!said && type == "tool_result")
      read_result(block);
    else
      refuse_block(block, type,
                   said ? "text, tool_use and thinking from the assistant"
                        : "text and tool_result from the user");
  }

  void read_call(json_object_reader& block) {
    tool_call call;
    call.id = block.required_string("id", {1, 128});
    call.name = read_function_name(block, name_bytes_max);
    const auto& input = block.require("input");
    if (input.get_if<json_value::object>() == nullptr)
      throw invalid_value(block.path("input"), block.path("input") + " must be an object, not "
                                                   + std::string(input.kind()));
    call.arguments = to_json(input);
    block.find("caller");
    auto& calls = current().tool_calls;
    if (calls.size() == calls_max)
      throw invalid_value(block.path("type"), block.path("type") + " is one tool_use more than "
                                                  + std::to_string(calls_max)
                                                  + ", which is the most in one turn");
    calls.push_back(std::move(call));
  }

  void read_thinking(json_object_reader& block) {
    block.find("signature");
    auto& reasoning = current().reasoning;
    reasoning += (reasoning.empty() ? "" : "\n") + block.required_string("thinking");
  }

  void read_result(json_object_reader& block) {
    chat_message m;
    m.role = "tool";
    m.tool_call_id = block.required_string("tool_use_id", {1, 128});
    block.optional<bool>("is_error"); // templates have no place for it: the text says it
    if (const auto* content = block.find("content"))
      read_texts(*content, block.path("content"), block, m);
    m.parts.clear();
    to_.push_back(std::move(m));
  }

  const std::string role_;
  std::vector<chat_message>& to_;
  const size_t first_ = to_.size();
};

/// `system` and `messages`.
std::vector<chat_message> read_turns(json_object_reader& body, const api_limits& limits) {
  std::vector<chat_message> messages;
  if (const auto* system = body.find("system"))
    read_texts(*system, "system", body, messages.emplace_back(chat_message{"system", {}, {}}));
  const auto& items = json_items(body.require("messages"), "messages", {1, limits.messages});
  for (size_t i = 0; i < items.size(); ++i) {
    json_object_reader item(items[i], json_index("messages", i), body);
    const auto role = item.required_string("role", {1, 64});
    if (role != "user" && role != "assistant" && role != "system")
      throw invalid_value(item.path("role"), item.path("role")
                                                 + " must be user, assistant or system, not "
                                                 + to_json(json_value(role)));
    turn_reader{role, messages}.read(item);
  }
  return messages;
}

tool read_tool(const json_value& value, const std::string& path) {
  json_object_reader item(value, path);
  if (const auto type = item.optional_string("type", {1, 64}).value_or("custom"); type != "custom")
    throw unsupported_parameter(item.path("type"),
                                item.path("type") + " is " + to_json(json_value(type))
                                    + ": this server runs no tools of its own, give tools with "
                                      "name and input_schema");
  tool out;
  out.name = read_function_name(item, name_bytes_max);
  item.optional_string("description");
  out.strict = item.optional<bool>("strict").value_or(false);
  const auto& schema = item.require("input_schema");
  out.schema_field = item.path("input_schema");
  if (schema.get_if<json_value::object>() == nullptr)
    throw invalid_value(out.schema_field,
                        out.schema_field + " must be an object, not " + std::string(schema.kind()));
  out.parameters = schema;
  out.definition = function_definition(out.name, item.find("description"), &schema, out.strict);
  return out;
}

void choose_tool(tool_use& use, json_object_reader& body) {
  const auto* value = body.find("tool_choice");
  use.what = use.tools.empty() ? tool_use::choice::none : tool_use::choice::automatic;
  if (value == nullptr) return;
  json_object_reader wanted(*value, "tool_choice", body);
  const auto type = wanted.required_string("type", {1, 64});
  use.parallel = !wanted.optional<bool>("disable_parallel_tool_use").value_or(false);
  if (type != "none" && type != "auto" && type != "any" && type != "tool")
    throw invalid_value("tool_choice.type", "tool_choice.type must be auto, any, tool or none, not "
                                                + to_json(json_value(type)));
  if (type == "none") use.what = tool_use::choice::none;
  if (type == "none" || type == "auto") return;
  if (use.tools.empty())
    throw invalid_value("tool_choice", "tool_choice requires a call, but tools is empty");
  use.what = tool_use::choice::required;
  if (type == "any") return;
  keep_tools(use, {read_function_name(wanted, name_bytes_max)}, "tool_choice.name");
  use.parallel = false;
}

tool_use read_tools(json_object_reader& body) {
  tool_use use;
  if (const auto* value = body.find("tools")) {
    const auto& items = json_items(*value, "tools", {0, tools_max});
    for (size_t i = 0; i < items.size(); ++i)
      add_tool(use, read_tool(items[i], json_index("tools", i)), "tools");
  }
  choose_tool(use, body);
  if (!use.active()) use.tools.clear();
  return use;
}

void read_stop_sequences(json_object_reader& body, const api_limits& limits, generation_params& p) {
  const auto* value = body.find("stop_sequences");
  if (value == nullptr) return;
  const auto& items = json_items(*value, "stop_sequences", {0, limits.stop_strings});
  for (size_t i = 0; i < items.size(); ++i)
    p.stop.push_back(
        json_string(items[i], json_index("stop_sequences", i), {1, limits.stop_string_bytes}));
}

/// `output_config`, and the `output_format` that was its name before. Gives the effort, if there is
/// one.
std::optional<std::string> read_output_config(json_object_reader& body, generation_params& p) {
  auto format = read_flat_format(body, "output_format");
  std::optional<std::string> effort;
  if (const auto* value = body.find("output_config")) {
    json_object_reader config(*value, "output_config", body);
    effort = config.optional_string("effort", {1, 64});
    if (auto x = read_flat_format(config, "format")) format = std::move(x);
  }
  if (format) p.format = std::move(format);
  return effort;
}

/// `thinking`: whether the answer shows it, which it does only where asked to, and what the
/// template is told where it says more than that.
void read_thinking(json_object_reader& body, chat_request& to, const api_limits& limits) {
  const auto* value = body.find("thinking");
  to.params.include_reasoning = value != nullptr;
  if (value == nullptr) return;
  json_object_reader thinking(*value, "thinking", body);
  for (const char* name : {"budget_tokens", "display"}) thinking.find(name);
  const auto type = thinking.required_string("type", {1, 64});
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    throw invalid_value("thinking.type", "thinking.type must be enabled, disabled or adaptive, not "
                                             + to_json(json_value(type)));
  to.params.include_reasoning = type != "disabled";
  if (type == "enabled" || type == "disabled") tell_thinking(to, type == "enabled", limits);
}

/// A bound of 0 has the prompt computed and cached, and nothing else; what asks for more is refused
/// beside it.
void refuse_beside_zero(json_object_reader& body, const chat_request& request) {
  const auto& p = request.params;
  if (*p.max_tokens > 0) return;
  const auto refuse = [](bool asked, const std::string& field) {
    if (asked)
      throw invalid_value(field, field
                                     + " is not allowed with max_tokens: 0, which computes the "
                                       "prompt alone: remove it, or raise max_tokens");
  };
  refuse(p.stream, "stream");
  refuse(p.format.has_value(), p.format ? p.format->field : "");
  refuse(request.tools.what == tool_use::choice::required, "tool_choice");
  const auto* thinking = body.find("thinking");
  const auto* type = thinking == nullptr ? nullptr : thinking->find("type");
  const auto* word = type == nullptr ? nullptr : type->get_if<std::string>();
  refuse(word != nullptr && *word == "enabled", "thinking");
}

/// The budget of enabled thinking, where it is given: this server has none, but what Anthropic
/// refuses is refused here, too. Beside tools the budget is of several answers and may exceed the
/// bound of one.
void check_thinking_budget(json_object_reader& body, const chat_request& request) {
  const auto* value = body.find("thinking");
  if (value == nullptr) return;
  json_object_reader thinking(*value, "thinking");
  if (thinking.required_string("type") != "enabled") return;
  const auto budget = thinking.optional<uint32_t>("budget_tokens", {1024, INT32_MAX});
  const auto most = request.params.max_tokens;
  if (budget && most && *budget >= *most && !request.tools.active())
    throw invalid_value("thinking.budget_tokens",
                        "thinking.budget_tokens is " + std::to_string(*budget)
                            + ", but must be less than max_tokens, " + std::to_string(*most)
                            + ": lower it, or raise max_tokens");
}

/// What becomes the prompt.
chat_request read_prompt(json_object_reader& body, const api_limits& limits) {
  chat_request request;
  request.model = body.required_string("model", {1, 256});
  request.messages = read_turns(body, limits);
  if (may_go_on(request.messages.back())) request.end = prompt_end::continues;
  request.tools = read_tools(body);
  request.template_kwargs = read_template_kwargs(body);
  for (const char* name : messages_without_effect) body.find(name);
  return request;
}

} // namespace

chat_request parse_messages_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    auto request = read_prompt(body, limits);
    if (request.messages.back().role == "assistant" && request.end != prompt_end::continues)
      throw invalid_value("messages", "messages must end with one of the user, or with a text of "
                                      "the assistant, which the answer continues");
    auto& p = request.params = read_generation(body, limits, 0);
    read_thinking(body, request, limits);
    body.require("max_tokens");
    const auto effort = read_output_config(body, p);
    read_stop_sequences(body, limits, p);
    if (request.tools.active()) refuse_endless(p);
    refuse_other_ends(p);
    refuse_beside_zero(body, request);
    check_thinking_budget(body, request);
    refuse_rest_of_format(request);
    refuse_unsupported(body, generation_unsupported());
    refuse_unsupported(body, unsupported);
    request.unknown = take_unknown(body, limits);
    if (effort) tell_effort(request, *effort, "output_config.effort", limits);
    return request;
  });
}

chat_request parse_count_tokens_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    auto request = read_prompt(body, limits);
    read_thinking(body, request, limits);
    check_thinking_budget(body, request);
    const auto effort = read_output_config(body, request.params);
    refuse_unsupported(body, unsupported);
    request.unknown = take_unknown(body, limits);
    if (effort) tell_effort(request, *effort, "output_config.effort", limits);
    return request;
  });
}

} // namespace lamella::net
