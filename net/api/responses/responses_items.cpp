// Items of the Responses API as messages of a chat.
#include "base/json_writer.hpp"
#include "net/api/api_fields.hpp"
#include "net/api/responses/responses_request.hpp"

#include <algorithm>
#include <array>

namespace lamella::net {

namespace {

constexpr size_t parts_max = 1'024;

/// The text of a part. Other types than texts are refused.
std::string text_of_part(json_object_reader& part) {
  const auto type = part.required_string("type", {1, 64});
  if (type == "refusal") return part.required_string("refusal");
  constexpr std::array<std::string_view, 5> texts{"input_text", "output_text", "text",
                                                  "summary_text", "reasoning_text"};
  if (std::find(texts.begin(), texts.end(), type) == texts.end())
    throw unsupported_parameter(part.path("type"), part.path("type") + " is "
                                                       + to_json(json_value(type))
                                                       + ": this model takes text only, as "
                                                         "input_text or output_text");
  for (const char* name : {"annotations", "logprobs"}) part.find(name); // of answers
  return part.required_string("text");
}

/// The texts of `key`: of a string, or of an array of parts.
std::vector<std::string> texts_of(json_object_reader& item, std::string_view key, bool& in_parts) {
  const auto& value = item.require(key);
  const auto path = item.path(key);
  in_parts = value.get_if<std::string>() == nullptr;
  if (!in_parts) return {*value.get_if<std::string>()};
  if (value.get_if<json_value::array>() == nullptr)
    throw invalid_value(path, path + " must be a string or an array of parts, not "
                                  + std::string(value.kind()));
  const auto& parts = json_items(value, path, {0, parts_max});
  std::vector<std::string> texts;
  for (size_t i = 0; i < parts.size(); ++i) {
    json_object_reader part(parts[i], json_index(path, i), item);
    texts.push_back(text_of_part(part));
  }
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) all += (i > 0 ? "\n" : "") + texts[i];
  return all;
}

/// Reads one item after the other into the messages of a chat.
class item_reader {
public:
  void read(json_object_reader& item) {
    const auto* role = item.find("role");
    const auto type =
        item.optional_string("type", {1, 64})
            .value_or(role != nullptr || item.find("id") == nullptr ? "message" : "item_reference");
    for (const char* name : {"id", "status", "phase"}) item.find(name); // of answers
    if (type == "message")
      read_message(item);
    else if (type == "function_call")
      read_call(item);
    else if (type == "function_call_output")
      read_output(item);
    else if (type == "reasoning")
      read_reasoning(item);
    else
      refuse(item, type);
  }

  std::vector<chat_message> messages;

private:
  [[noreturn]] static void refuse(json_object_reader& item, const std::string& type) {
    const auto path = item.path("type");
    if (type == "item_reference")
      throw unsupported_parameter(path, path
                                            + " is \"item_reference\": single items are not kept "
                                              "here, send the item itself");
    throw unsupported_parameter(path, path + " is " + to_json(json_value(type))
                                          + ": this server knows message, function_call, "
                                            "function_call_output and reasoning, and runs no tools "
                                            "of its own");
  }

  void read_message(json_object_reader& item) {
    constexpr std::array<std::string_view, 4> roles{"user", "assistant", "system", "developer"};
    chat_message m;
    m.role = item.required_string("role", {1, 64});
    if (std::find(roles.begin(), roles.end(), m.role) == roles.end())
      throw invalid_value(item.path("role"),
                          item.path("role") + " must be user, assistant, system or developer, not "
                              + to_json(json_value(m.role)));
    bool in_parts = false;
    auto texts = texts_of(item, "content", in_parts);
    m.content = joined(texts);
    if (in_parts) m.parts = std::move(texts);
    add(std::move(m));
  }

  void read_call(json_object_reader& item) {
    tool_call call;
    call.id = item.required_string("call_id", {1, 128});
    call.name = read_function_name(item, 128);
    call.arguments = item.optional_string("arguments", {0, arguments_bytes_max}).value_or("");
    // One answer may have a text and calls.
    if (messages.empty() || messages.back().role != "assistant" || !reasoning_.empty())
      add({"assistant", {}, {}});
    auto& calls = messages.back().tool_calls;
    if (calls.size() == calls_max)
      throw invalid_value(item.path("type"), item.path("type") + " is one function_call more than "
                                                 + std::to_string(calls_max)
                                                 + ", which is the most in one answer");
    calls.push_back(std::move(call));
  }

  void read_output(json_object_reader& item) {
    chat_message m;
    m.role = "tool";
    m.tool_call_id = item.required_string("call_id", {1, 128});
    m.name = item.optional_string("name", {0, 128}).value_or("");
    bool in_parts = false;
    auto texts = texts_of(item, "output", in_parts);
    m.content = joined(texts);
    add(std::move(m));
  }

  void read_reasoning(json_object_reader& item) {
    bool in_parts = false;
    for (const char* name : {"content", "summary"})
      if (item.find(name) != nullptr && reasoning_.empty())
        reasoning_ = joined(texts_of(item, name, in_parts));
    item.find("encrypted_content"); // by others, who alone can read it
  }

  void add(chat_message m) {
    if (m.role == "assistant") m.reasoning = std::move(reasoning_);
    reasoning_.clear();
    messages.push_back(std::move(m));
  }

  std::string reasoning_; ///< of the answer that comes next
};

} // namespace

std::vector<chat_message> read_input_items(json_object_reader& body, const api_limits& limits) {
  const bool continues = body.find("previous_response_id") != nullptr;
  if (continues && body.find("input") == nullptr) return {};
  const auto& input = body.require("input");
  if (const auto* text = input.get_if<std::string>()) return {chat_message{"user", *text, {}}};
  if (input.get_if<json_value::array>() == nullptr)
    throw invalid_value("input", "input must be a string or an array of items, not "
                                     + std::string(input.kind()));
  const auto& items = json_items(input, "input", {continues ? 0u : 1u, limits.messages});
  item_reader reader;
  for (size_t i = 0; i < items.size(); ++i) {
    json_object_reader item(items[i], json_index("input", i), body);
    reader.read(item);
  }
  return std::move(reader.messages);
}

} // namespace lamella::net
