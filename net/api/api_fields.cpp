#include "net/api/api_fields.hpp"

#include "base/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lamella::net {

namespace {

constexpr double greedy_below = 1e-5;
constexpr size_t stop_token_ids_max = 256;
constexpr size_t template_kwargs_bytes_max = 8 << 10;

/// Fields that have no effect here but are part of the published schema.
constexpr std::array<std::string_view, 7> fields_without_effect{
    "user",     "safety_identifier", "metadata",
    "store",    "prompt_cache_key",  "prompt_cache_retention",
    "verbosity"};

uint32_t token_id(const json_value& value, const std::string& path, const api_limits& limits) {
  const uint32_t max = limits.vocabulary ? limits.vocabulary - 1 : INT32_MAX;
  return json_as<uint32_t>(value, path, {0, max});
}

void read_logit_bias(json_object_reader& body, const api_limits& limits, sampling_params& out) {
  const json_value* value = body.find("logit_bias");
  if (!value) return;
  const auto* members = value->get_if<json_value::object>();
  if (!members)
    throw invalid_value("logit_bias", "logit_bias must be an object of token ids and numbers, not "
                                          + std::string(value->kind()));
  if (members->size() > limits.logit_bias)
    throw invalid_value("logit_bias", "logit_bias has " + std::to_string(members->size())
                                          + " entries, at most " + std::to_string(limits.logit_bias)
                                          + " are allowed");
  for (const auto& [key, bias] : *members) {
    uint32_t id = 0;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool canonical = ec == std::errc{} && end == key.data() + key.size()
                           && (key.size() == 1 || key.front() != '0');
    if (!canonical || (limits.vocabulary && id >= limits.vocabulary))
      throw invalid_value("logit_bias",
                          "logit_bias has the key " + to_json(json_value(key.substr(0, 40)))
                              + ", which is not the id of a token"
                              + (limits.vocabulary ? " below " + std::to_string(limits.vocabulary)
                                                   : std::string()));
    out.logit_bias.emplace_back(
        id, static_cast<float>(json_as<double>(bias, "logit_bias." + key, {-100, 100})));
  }
  std::sort(out.logit_bias.begin(), out.logit_bias.end());
}

void read_stop(json_object_reader& body, const api_limits& limits, generation_params& out) {
  const json_value* value = body.find("stop");
  if (!value) return;
  if (value->get_if<std::string>()) {
    out.stop.push_back(json_string(*value, "stop", {1, limits.stop_string_bytes}));
    return;
  }
  if (!value->get_if<json_value::array>())
    throw invalid_value("stop", "stop must be a string or an array of strings, not "
                                    + std::string(value->kind()));
  const auto& items = json_items(*value, "stop", {0, limits.stop_strings});
  for (size_t i = 0; i < items.size(); ++i)
    out.stop.push_back(json_string(items[i], json_index("stop", i), {1, limits.stop_string_bytes}));
}

/// 64 bits, of a signed number or of an unsigned one: -1 is the same seed as 2^64-1.
std::optional<int64_t> read_seed(json_object_reader& body) {
  const json_value* value = body.find("seed");
  if (value == nullptr) return std::nullopt;
  if (const auto* large = value->get_if<uint64_t>()) return static_cast<int64_t>(*large);
  const auto* real = value->get_if<double>();
  constexpr double exact = 9007199254740992.0; // as json_as: a double names one integer up to there
  if (value->get_if<big_integer>() || (real != nullptr && std::abs(*real) > exact))
    throw invalid_value("seed", "seed must be an integer between -9223372036854775808 and "
                                "18446744073709551615, not "
                                    + to_json(*value).substr(0, 40));
  return json_as<int64_t>(*value, body.path("seed"));
}

void read_stream_options(json_object_reader& body, generation_params& out) {
  const json_value* value = body.find("stream_options");
  if (!value) return;
  if (!out.stream)
    throw invalid_value("stream_options", "stream_options is only allowed with stream: true");
  json_object_reader options(*value, "stream_options", body);
  options.find("include_obfuscation"); // it pads chunks; ours have no padding
  out.include_usage = options.optional<bool>("include_usage").value_or(false);
  out.continuous_usage = options.optional<bool>("continuous_usage_stats").value_or(false);
}

/// The text of a message: a string, or an array of text parts.
void read_content(json_object_reader& item, const json_value& content, chat_message& out) {
  const auto path = item.path("content");
  if (const auto* text = content.get_if<std::string>()) {
    out.content = *text;
    return;
  }
  if (!content.get_if<json_value::array>())
    throw invalid_value(path, path + " must be a string or an array of text parts, not "
                                  + std::string(content.kind()));
  const auto& parts = json_items(content, path, {0, 1024});
  for (size_t i = 0; i < parts.size(); ++i) {
    json_object_reader part(parts[i], json_index(path, i), item);
    const std::string type = part.required_string("type", {1, 64});
    if (type != "text" && type != "refusal")
      throw unsupported_parameter(part.path("type"), part.path("type") + " is "
                                                         + to_json(json_value(type))
                                                         + ": this model accepts only \"text\"");
    out.parts.push_back(part.required_string(type));
    out.content += (i > 0 ? "\n" : "") + out.parts.back();
  }
}

/// Members of a message that only the chat template knows; clients have no say in names that begin
/// with an underscore.
void read_members_of_template(json_object_reader& item, const api_limits& limits,
                              chat_message& out) {
  if (!limits.template_reads) return;
  for (const auto key : item.unread())
    if (!key.starts_with('_') && limits.template_reads(key))
      if (const auto* value = item.find(key)) out.more.emplace_back(std::string(key), *value);
}

/// The path of a field without the places in its arrays: one name for all of them.
std::string without_places(const std::string& path) {
  std::string name;
  bool within = false;
  for (const char c : path) {
    if (c == ']') within = false;
    if (!within) name += c;
    if (c == '[') within = true;
  }
  return name;
}

/// What a message says. An answer or a result may be nothing: calls alone, a refusal, a function
/// that returned nothing.
void read_text(json_object_reader& item, chat_message& message) {
  const auto refusal = item.optional_string("refusal").value_or("");
  if (const auto* content = item.find("content")) return read_content(item, *content, message);
  if (message.role == "system" || message.role == "developer" || message.role == "user")
    item.require("content");
  message.content = refusal;
}

bool identifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || name.size() > 64 || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool is_container(const json_value& value) {
  return value.get_if<json_value::array>() || value.get_if<json_value::object>();
}

/// Why a client may not set this variable of templates; empty: it may. Names of the language's
/// functions are names like others, as with Hugging Face and vLLM: a variable hides the function.
std::string_view refused_variable(std::string_view name) {
  constexpr std::array<std::string_view, 6> fields{
      "messages",     "tools", "documents", "add_generation_prompt", "continue_final_message",
      "chat_template"};
  constexpr std::array<std::string_view, 4> tokens{"bos_token", "eos_token", "unk_token",
                                                   "pad_token"};
  const auto is_in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_in(fields)) return ", which is a field of the request and no variable of its own";
  if (is_in(tokens)) return ", which is a token of the model";
  if (name == "tokenize") return ", which is no variable: prompts are always tokenised";
  return identifier(name) ? "" : ", which is not an identifier";
}

/// A scalar, or an array or object of scalars.
bool shallow(const json_value& value) {
  if (const auto* items = value.get_if<json_value::array>())
    return std::none_of(items->begin(), items->end(), is_container);
  if (const auto* members = value.get_if<json_value::object>())
    return std::none_of(members->begin(), members->end(),
                        [](const auto& member) { return is_container(member.second); });
  return true;
}

} // namespace

std::vector<std::string> take_unknown(json_object_reader& body, const api_limits& limits) {
  std::vector<std::string> unknown;
  for (const std::string_view key : body.unread()) {
    if (body.find(key) == nullptr) continue; // null
    if (key.starts_with('_') || key == "kv_transfer_params")
      throw unsupported_parameter(std::string(key.substr(0, 64)),
                                  "names that start with an underscore and kv_transfer_params are "
                                  "internal: remove them");
    if (std::find(fields_without_effect.begin(), fields_without_effect.end(), key)
        != fields_without_effect.end())
      continue;
    if (limits.strict) throw unknown_parameter(std::string(key.substr(0, 64)));
    unknown.emplace_back(key.substr(0, 64));
  }
  for (const auto& path : body.unread_within()) {
    if (limits.strict) throw unknown_parameter(path);
    unknown.push_back(without_places(path));
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  return unknown;
}

std::optional<uint32_t> read_prompt_logprobs(json_object_reader& body, const api_limits& limits,
                                             bool stream) {
  constexpr const char* name = "prompt_logprobs";
  const auto* value = body.find(name);
  if (!value) return std::nullopt;
  if (const auto* off = value->get_if<bool>(); off && !*off) return std::nullopt;
  const auto wanted = body.optional<uint32_t>(name, {0, limits.top_logprobs});
  if (wanted && stream)
    throw unsupported_parameter(name, "prompt_logprobs are not part of streams: leave out stream, "
                                      "or send echo: true and logprobs to /v1/completions");
  return wanted;
}

void check_prompt_logprobs(uint64_t tokens, uint32_t alternatives, uint32_t choices,
                           const api_limits& limits, const std::string& field) {
  const uint64_t entries = tokens * (1 + uint64_t{alternatives}) * choices;
  if (limits.prompt_logprobs == 0)
    throw unsupported_parameter(field, "this server gives no log probabilities of prompts "
                                       "(limits.prompt_logprobs is 0): leave "
                                           + field + " out");
  if (entries > limits.prompt_logprobs)
    throw invalid_value(field, "the log probabilities of " + std::to_string(tokens)
                                   + " prompt tokens with " + std::to_string(alternatives)
                                   + " alternatives each, in " + std::to_string(choices)
                                   + " choices, are " + std::to_string(entries)
                                   + " values, at most " + std::to_string(limits.prompt_logprobs)
                                   + " are allowed (limits.prompt_logprobs): send fewer prompts "
                                     "at once, or ask for fewer alternatives or choices");
}

generation_params read_generation(json_object_reader& body, const api_limits& limits,
                                  uint32_t max_tokens_min) {
  generation_params p;
  sampling_params& s = p.sampling;
  s.temperature = body.optional<double>("temperature", {0, 2}).value_or(1);
  if (s.temperature < greedy_below) s.temperature = 0;
  s.top_p = body.optional<double>("top_p", {0, 1}).value_or(1);
  const int32_t top_k = body.optional<int32_t>("top_k", {-1, INT32_MAX}).value_or(0);
  s.top_k = top_k < 0 ? 0 : static_cast<uint32_t>(top_k);
  s.min_p = body.optional<double>("min_p", {0, 1}).value_or(0);
  s.presence_penalty = body.optional<double>("presence_penalty", {-2, 2}).value_or(0);
  s.frequency_penalty = body.optional<double>("frequency_penalty", {-2, 2}).value_or(0);
  const auto penalty = [&](const char* name) { return body.optional<double>(name, {0.01, 100}); };
  const auto other = penalty("repeat_penalty"); // llama.cpp's name
  s.repetition_penalty = penalty("repetition_penalty").value_or(other.value_or(1));
  s.seed = read_seed(body);
  read_logit_bias(body, limits, s);

  p.n = body.optional<uint32_t>("n", {1, std::min(limits.max_n, 128u)}).value_or(1);
  const json_range<uint32_t> lengths{max_tokens_min, INT32_MAX};
  p.max_tokens = body.optional<uint32_t>("max_tokens", lengths);
  p.min_tokens = body.optional<uint32_t>("min_tokens", {0, INT32_MAX}).value_or(0);
  read_stop(body, limits, p);
  if (const json_value* ids = body.find("stop_token_ids"))
    p.stop_token_ids = read_token_ids(*ids, "stop_token_ids", limits, 0, stop_token_ids_max);
  p.ignore_eos = body.optional<bool>("ignore_eos").value_or(false);
  p.skip_special_tokens = body.optional<bool>("skip_special_tokens").value_or(true);
  p.format = read_output_format(body);
  p.stream = body.optional<bool>("stream").value_or(false);
  read_stream_options(body, p);
  p.echo_service_tier = body.optional_string("service_tier", {1, 64}).has_value();
  p.cache_salt = body.optional_string("cache_salt", {1, 256}).value_or("");
  p.request_id = body.optional_string("request_id", {1, 128}).value_or("");
  if (std::any_of(p.request_id.begin(), p.request_id.end(),
                  [](char c) { return c <= 0x20 || c >= 0x7F; }))
    throw invalid_value("request_id", "request_id must consist of visible ASCII characters");
  return p;
}

void refuse_endless(const generation_params& params) {
  if (params.min_tokens == 0 && !params.ignore_eos) return;
  const std::string field = params.ignore_eos ? "ignore_eos" : "min_tokens";
  throw invalid_value(field,
                      field + " is not allowed together with tools: a tool call ends the answer");
}

void refuse_other_ends(const generation_params& p) {
  if (!p.format) return;
  const auto refuse = [&](bool is_set, const std::string& field) {
    if (is_set)
      throw invalid_value(field, field + " is not allowed where " + p.format->field
                                     + " decides when the output is complete");
  };
  refuse(p.ignore_eos, "ignore_eos");
  refuse(p.min_tokens > 0, "min_tokens");
  refuse(!p.stop_token_ids.empty(), "stop_token_ids");
}

void check_combinations(const generation_params& p) {
  refuse_other_ends(p);
  if (!p.max_tokens) return;
  if (p.min_tokens > *p.max_tokens)
    throw invalid_value("min_tokens", "min_tokens is " + std::to_string(p.min_tokens)
                                          + ", more than " + std::string(p.max_tokens_field) + ", "
                                          + std::to_string(*p.max_tokens));
}

void check_budget(const generation_params& p, size_t prompts, const api_limits& limits) {
  const uint64_t tokens = uint64_t{p.drawn()} * prompts * p.max_tokens.value_or(0);
  if (tokens > limits.tokens_per_request)
    throw invalid_value(std::string(p.max_tokens_field),
                        std::string(p.drawn() > p.n ? "best_of" : "n") + " x prompts x "
                            + std::string(p.max_tokens_field) + " is " + std::to_string(p.drawn())
                            + " x " + std::to_string(prompts) + " x "
                            + std::to_string(*p.max_tokens) + " = " + std::to_string(tokens)
                            + ", at most " + std::to_string(limits.tokens_per_request)
                            + " is allowed by limits.tokens_per_request of this server");
}

std::vector<chat_message> read_messages(json_object_reader& body, const api_limits& limits) {
  constexpr std::array<std::string_view, 6> roles{"system",    "developer", "user",
                                                  "assistant", "tool",      "function"};
  constexpr unsupported_field fields[] = {{"audio", ""}};
  const auto& items = json_items(body.require("messages"), "messages", {1, limits.messages});
  std::vector<chat_message> messages;
  messages.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    json_object_reader item(items[i], json_index("messages", i), body);
    chat_message& message = messages.emplace_back();
    message.role = item.required_string("role", {1, 64});
    if (std::find(roles.begin(), roles.end(), message.role) == roles.end())
      throw invalid_value(item.path("role"), item.path("role")
                                                 + " must be system, developer, user, assistant, "
                                                   "tool or function, not "
                                                 + to_json(json_value(message.role)));
    if (message.role == "function") message.role = "tool"; // its name before 2023
    refuse_unsupported(item, fields);
    message.tool_calls = read_tool_calls(item);
    message.tool_call_id = item.optional_string("tool_call_id", {0, 128}).value_or("");
    if (!message.tool_calls.empty() && message.role != "assistant")
      throw invalid_value(item.path("tool_calls"),
                          item.path("tool_calls") + " are allowed only for the role assistant, not "
                              + message.role);
    read_text(item, message);
    message.name = item.optional_string("name", {0, 64}).value_or("");
    const auto reasoning = item.optional_string("reasoning_content");
    message.reasoning = item.optional_string("reasoning").value_or(reasoning.value_or(""));
    message.prefix = item.optional<bool>("prefix").value_or(false);
    item.find("annotations"); // of an answer; they have no effect
    read_members_of_template(item, limits, message);
  }
  return messages;
}

json_value::object read_template_kwargs(json_object_reader& body) {
  const std::string path = "chat_template_kwargs";
  const json_value* value = body.find(path);
  if (!value) return {};
  const auto* members = value->get_if<json_value::object>();
  if (!members)
    throw invalid_value(path, path + " must be an object, not " + std::string(value->kind()));
  if (to_json(*value).size() > template_kwargs_bytes_max)
    throw invalid_value(path, path + " is larger than 8192 bytes");
  for (const auto& [key, item] : *members) {
    if (const auto why = refused_variable(key); !why.empty())
      throw invalid_value(path, path + " has the key " + to_json(json_value(key.substr(0, 64)))
                                    + std::string(why));
    if (!shallow(item))
      throw invalid_value(path + "." + key, path + "." + key + " is nested too deeply");
  }
  return *members;
}

std::vector<uint32_t> read_token_ids(const json_value& value, const std::string& path,
                                     const api_limits& limits, size_t min, size_t max) {
  const auto& items = json_items(value, path, {min, max});
  std::vector<uint32_t> ids;
  ids.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    ids.push_back(token_id(items[i], json_index(path, i), limits));
  return ids;
}

} // namespace lamella::net
