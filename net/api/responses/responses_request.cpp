#include "net/api/responses/responses_request.hpp"

#include "base/json_writer.hpp"
#include "base/utf8.hpp"
#include "net/api/api_fields.hpp"
#include "net/api/reasoning_switches.hpp"

#include <algorithm>
#include <array>

namespace lamella::net {

namespace {

constexpr size_t metadata_max = 16, repeated_bytes_max = size_t{1} << 20;

/// Fields by which other APIs say the same.
struct other_name {
  std::string_view name, here;
};
constexpr other_name other_names[] = {
    {"messages", "input"},
    {"prompt_tokens", "input"},
    {"max_tokens", "max_output_tokens"},
    {"max_completion_tokens", "max_output_tokens"},
    {"response_format", "text.format"},
    {"logprobs", "include: [\"message.output_text.logprobs\"]"},
    {"reasoning_effort", "reasoning.effort"},
};

constexpr unsupported_field unsupported[] = {
    {"prompt_logprobs", "false"},
    {"background", "false"},
    {"conversation", ""},
    {"prompt", ""},
    {"n", "1"},
    {"truncation", R"("disabled")"},
    {"context_management", "[]"},
    {"moderation", ""},
    {"chat_template", ""},
    {"add_generation_prompt", "true"},
    {"continue_final_message", "false"},
    {"add_special_tokens", "false"},
};

void refuse_other_names(json_object_reader& body) {
  for (const auto& [name, here] : other_names)
    if (body.find(name) != nullptr)
      throw unsupported_parameter(std::string(name), std::string(name)
                                                         + " is not a field of responses: use "
                                                         + std::string(here));
}

/// OpenAI's API states such bounds in characters.
std::string read_characters(const json_value& value, const std::string& path, size_t most) {
  auto text = json_string(value, path);
  if (const auto count = code_points(text); count > most)
    throw invalid_value(path, path + " must be a string of at most " + std::to_string(most)
                                  + " characters, not of " + std::to_string(count)
                                  + ": shorten it");
  return text;
}

/// Up to 16 pairs of strings, which are repeated in the answer.
std::string read_metadata(json_object_reader& body) {
  const auto* value = body.find("metadata");
  if (value == nullptr) return "{}";
  const auto* members = value->get_if<json_value::object>();
  if (members == nullptr)
    throw invalid_value("metadata",
                        "metadata must be an object of strings, not " + std::string(value->kind()));
  if (members->size() > metadata_max)
    throw invalid_value("metadata", "metadata has " + std::to_string(members->size())
                                        + " members, at most " + std::to_string(metadata_max)
                                        + " are allowed");
  for (const auto& [key, text] : *members) {
    if (code_points(key) > 64)
      throw invalid_value("metadata", "metadata has a key of more than 64 characters: shorten it");
    read_characters(text, "metadata." + key, 512);
  }
  return to_json(*value);
}

/// `effort`: that of it, if there is one.
std::string read_reasoning(json_object_reader& body, std::optional<std::string>& effort) {
  const auto* value = body.find("reasoning");
  if (value == nullptr) return R"({"effort":null,"summary":null})";
  json_object_reader reasoning(*value, "reasoning", body);
  effort = reasoning.optional_string("effort", {1, 64});
  for (const char* name : {"summary", "generate_summary", "context", "mode"}) // without effect
    reasoning.optional_string(name, {1, 64});
  return to_json(*value);
}

/// `text`, and the format that it asks for.
std::string read_text(json_object_reader& body, generation_params& p) {
  const json_value plain = json_value::object{{"format", json_value::object{{"type", "text"}}}};
  const auto* value = body.find("text");
  if (value == nullptr) return to_json(plain);
  json_object_reader text(*value, "text", body);
  text.optional_string("verbosity", {1, 64}); // without effect
  if (auto format = read_flat_format(text, "format")) {
    if (p.format)
      throw invalid_value(p.format->field, p.format->field + " is not allowed together with "
                                               + format->field + ": use one format");
    p.format = std::move(format);
  }
  if (value->find("format") != nullptr && !value->find("format")->is_null()) return to_json(*value);
  auto members = *value->get_if<json_value::object>();
  std::erase_if(members, [](const auto& member) { return member.first == "format"; });
  members.insert(members.begin(), plain.get_if<json_value::object>()->front());
  return to_json(members);
}

/// Whether `include` asks for log probabilities. What it names of tools that run on servers cannot
/// be in an answer of this one.
bool includes_logprobs(json_object_reader& body) {
  const auto* value = body.find("include");
  if (value == nullptr) return false;
  bool wanted = false;
  const auto& items = json_items(*value, "include", {0, 32});
  for (size_t i = 0; i < items.size(); ++i) {
    const auto name = json_string(items[i], json_index("include", i), {1, 128});
    if (name == "message.output_text.logprobs")
      wanted = true;
    else if (name != "reasoning.encrypted_content" && name.find("_call") == std::string::npos
             && name != "message.input_image.image_url")
      throw invalid_value(json_index("include", i),
                          json_index("include", i) + " is " + to_json(json_value(name))
                              + ", which this server does not know: use "
                                "\"message.output_text.logprobs\", or leave it out");
  }
  return wanted;
}

/// The JSON of a member that the answer repeats as it came, for as long as the request lives and
/// several times in a stream; nothing where it is absent.
std::optional<std::string> repeated(json_object_reader& body, const std::string& name) {
  const auto* value = body.find(name);
  if (value == nullptr) return {};
  auto text = to_json(*value);
  if (text.size() > repeated_bytes_max)
    throw invalid_value(name, name + " is larger than " + std::to_string(repeated_bytes_max)
                                  + " bytes, and would be repeated in the answer: shorten it");
  return text;
}

/// What is repeated as it came, and the bounds of the answer. Gives the effort, if there is one.
std::optional<std::string> read_facts(json_object_reader& body, const api_limits& limits,
                                      responses_request& to) {
  auto& facts = to.facts;
  auto& p = to.chat.params;
  facts.max_output_tokens = p.max_tokens =
      body.optional<uint32_t>("max_output_tokens", {1, INT32_MAX});
  p.max_tokens_field = "max_output_tokens";
  const auto top = body.optional<uint32_t>("top_logprobs", {0, limits.top_logprobs});
  facts.logprobs = includes_logprobs(body) || top.value_or(0) > 0;
  facts.top_logprobs = top.value_or(0);
  if (facts.logprobs) p.logprobs = facts.top_logprobs;
  for (const char* name : {"text", "reasoning"}) repeated(body, name);
  facts.text = read_text(body, p);
  std::optional<std::string> effort;
  facts.reasoning = read_reasoning(body, effort);
  facts.metadata = read_metadata(body);
  facts.temperature = p.sampling.temperature;
  facts.top_p = p.sampling.top_p;
  facts.parallel_tool_calls = to.chat.tools.parallel;
  if (auto x = repeated(body, "tools")) facts.tools = std::move(*x);
  if (auto x = repeated(body, "tool_choice")) facts.tool_choice = std::move(*x);
  facts.store = body.optional<bool>("store").value_or(true);
  facts.previous_id = body.optional_string("previous_response_id", {1, 128}).value_or("");
  const auto text = [&](const char* name, std::string& member) {
    if (const auto* x = body.find(name))
      member = to_json(json_value(read_characters(*x, name, 512)));
  };
  text("user", facts.user);
  text("safety_identifier", facts.safety_identifier);
  text("prompt_cache_key", facts.prompt_cache_key);
  body.optional<uint32_t>("max_tool_calls"); // bounds tools that run on servers
  return effort;
}

} // namespace

responses_request parse_responses_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    responses_request to;
    auto& chat = to.chat;
    chat.model = body.required_string("model", {1, 256});
    refuse_other_names(body);
    to.facts.instructions = body.optional_string("instructions");
    chat.messages = read_input_items(body, limits);
    chat.tools = read_tool_use(body, tool_form::flat);
    auto& p = chat.params = read_generation(body, limits, 1);
    const auto effort = read_facts(body, limits, to);
    if (chat.tools.active()) refuse_endless(p);
    chat.template_kwargs = read_template_kwargs(body);
    refuse_unsupported(body, generation_unsupported());
    refuse_unsupported(body, unsupported);
    check_combinations(p);
    chat.unknown = take_unknown(body, limits);
    if (effort) tell_effort(chat, *effort, "reasoning.effort", limits);
    return to;
  });
}

} // namespace lamella::net
