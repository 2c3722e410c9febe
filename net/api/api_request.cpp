#include "net/api/api_request.hpp"

#include "net/api/api_fields.hpp"
#include "net/api/reasoning_switches.hpp"
#include "net/api/unsupported_fields.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

constexpr unsupported_field chat_unsupported[] = {
    {"functions", "[]"},
    {"function_call", R"("none" "auto")"},
    {"modalities", R"(["text"])"},
    {"audio", ""},
    {"prediction", ""},
    {"web_search_options", ""},
    {"documents", "[]"},
    {"chat_template", ""},
    {"add_special_tokens", "false"},
    {"echo", "false"},
    {"best_of", "1"},
    {"mm_processor_kwargs", "{}"},
};

constexpr unsupported_field completion_unsupported[] = {
    {"suffix", R"("")"},
    {"prompt_embeds", ""},
    {"add_special_tokens", "true"},
};

model::special read_markers(json_object_reader& body) {
  const bool parsed = body.optional<bool>("parse_special").value_or(true);
  return parsed ? model::special::allowed : model::special::forbidden;
}

std::vector<prompt_input> read_prompts(const json_value& value, const api_limits& limits) {
  const size_t ids_max = limits.json.array_items;
  if (const auto* text = value.get_if<std::string>()) return {*text};
  if (!value.get_if<json_value::array>())
    throw invalid_value("prompt", "prompt must be a string, an array of strings, an array of token "
                                  "ids or an array of arrays of token ids, not "
                                      + std::string(value.kind()));
  const auto& items = json_items(value, "prompt", {1, ids_max});
  const bool strings = items[0].get_if<std::string>();
  const bool lists = items[0].get_if<json_value::array>();
  if (!strings && !lists) return {read_token_ids(value, "prompt", limits, 1, ids_max)};
  json_items(value, "prompt", {1, limits.prompts});
  std::vector<prompt_input> prompts;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string path = json_index("prompt", i);
    if (strings)
      prompts.emplace_back(json_string(items[i], path));
    else
      prompts.emplace_back(read_token_ids(items[i], path, limits, 1, ids_max));
  }
  return prompts;
}

/// Throws api_error where `prompts` prompts with their choices are more than choices_max.
void check_choices(const generation_params& p, size_t prompts) {
  const uint64_t choices = uint64_t{p.drawn()} * prompts;
  if (choices <= choices_max) return;
  const std::string field = p.drawn() == 1 ? "prompt" : p.drawn() > p.n ? "best_of" : "n";
  throw invalid_value(field, (p.drawn() > p.n ? "best_of x prompts is " : "n x prompts is ")
                                 + std::to_string(p.drawn()) + " x " + std::to_string(prompts)
                                 + " = " + std::to_string(choices) + ", at most "
                                 + std::to_string(choices_max)
                                 + " are allowed: send fewer prompts at once, or ask for fewer "
                                   "choices");
}

/// `add_generation_prompt`, `continue_final_message`, and `prefix` of the last message, which means
/// the same.
prompt_end read_prompt_end(json_object_reader& body, const std::vector<chat_message>& messages) {
  const auto& last = messages.back();
  for (size_t i = 0; i + 1 < messages.size(); ++i)
    if (messages[i].prefix)
      throw invalid_value(json_index("messages", i) + ".prefix",
                          json_index("messages", i)
                              + ".prefix is true, and only the last message can be continued");
  const auto asked = body.optional<bool>("add_generation_prompt");
  const bool told = body.optional<bool>("continue_final_message").value_or(false);
  if (!told && !last.prefix) return asked.value_or(true) ? prompt_end::asks : prompt_end::as_it_is;
  if (asked.value_or(false))
    throw invalid_value("add_generation_prompt",
                        "add_generation_prompt cannot be true where the last message is continued");
  if (!may_go_on(last))
    throw invalid_value("messages", "the last message cannot be continued: it must be the "
                                    "assistant's, with a text and without tool calls");
  return prompt_end::continues;
}

} // namespace

void refuse_rest_of_format(const chat_request& request) {
  if (request.end != prompt_end::continues) return;
  if (const auto& format = request.params.format)
    throw invalid_value(format->field, std::string{format->field}
                                           + " is not allowed where the last message is continued");
  if (request.tools.what == tool_use::choice::required)
    throw invalid_value("tool_choice", "tool_choice must not require a call where the last message "
                                       "is continued: an answer goes on with its text");
}

chat_request parse_chat_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    chat_request request;
    request.model = body.required_string("model", {1, 256});
    request.messages = read_messages(body, limits);
    request.tools = read_tool_use(body);
    generation_params& p = request.params = read_generation(body, limits, 1);
    p.include_reasoning = body.optional<bool>("include_reasoning").value_or(true);
    if (const auto newer = body.optional<uint32_t>("max_completion_tokens", {1, INT32_MAX})) {
      p.max_tokens = newer;
      p.max_tokens_field = "max_completion_tokens";
    }
    const auto top = body.optional<uint32_t>("top_logprobs", {0, limits.top_logprobs});
    if (body.optional<bool>("logprobs").value_or(false))
      p.logprobs = top.value_or(0);
    else if (top.value_or(0) > 0) // 0 asks for nothing
      throw invalid_value("top_logprobs", "top_logprobs is only allowed with logprobs: true");
    p.prompt_logprobs = read_prompt_logprobs(body, limits, p.stream);
    if (request.tools.active()) refuse_endless(p);
    request.template_kwargs = read_template_kwargs(body);
    request.end = read_prompt_end(body, request.messages);
    refuse_rest_of_format(request);
    refuse_unsupported(body, generation_unsupported());
    refuse_unsupported(body, chat_unsupported);
    check_combinations(p);
    const auto effort = body.optional_string("reasoning_effort", {1, 64});
    request.unknown = take_unknown(body, limits);
    if (effort) tell_effort(request, *effort, "reasoning_effort", limits);
    return request;
  });
}

completion_request parse_completion_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    completion_request request;
    request.model = body.required_string("model", {1, 256});
    request.prompts = read_prompts(body.require("prompt"), limits);
    generation_params& p = request.params = read_generation(body, limits, 0);
    if (!p.max_tokens) p.max_tokens = std::max(16u, p.min_tokens);
    p.logprobs = body.optional<uint32_t>("logprobs", {0, limits.top_logprobs});
    p.prompt_logprobs = read_prompt_logprobs(body, limits, p.stream);
    request.echo = body.optional<bool>("echo").value_or(false);
    request.markers = read_markers(body);
    p.best_of = body.optional<uint32_t>("best_of", {0, limits.best_of}).value_or(0);
    if (p.best_of > 0 && p.best_of < p.n)
      throw invalid_value("best_of", "best_of is " + std::to_string(p.best_of) + ", less than n, "
                                         + std::to_string(p.n));
    if (p.best_of > p.n && p.stream)
      throw invalid_value("best_of", "best_of greater than n is not allowed with stream: true");
    check_choices(p, request.prompts.size());
    refuse_unsupported(body, generation_unsupported());
    refuse_unsupported(body, completion_unsupported);
    check_combinations(p);
    request.unknown = take_unknown(body, limits);
    return request;
  });
}

tokenize_request parse_tokenize_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    tokenize_request request;
    request.model = body.optional_string("model", {1, 256}).value_or("");
    request.prompt = body.optional_string("prompt");
    const bool chat = body.find("messages") != nullptr;
    if (chat == request.prompt.has_value())
      throw invalid_value("prompt", "give either prompt or messages");
    if (chat) {
      request.messages = read_messages(body, limits);
      request.end = read_prompt_end(body, request.messages);
      request.tools = read_tool_use(body);
    }
    request.add_special_tokens = body.optional<bool>("add_special_tokens").value_or(true);
    request.markers = read_markers(body);
    request.return_token_strs = body.optional<bool>("return_token_strs").value_or(false);
    request.template_kwargs = read_template_kwargs(body);
    constexpr unsupported_field fields[] = {{"chat_template", ""}};
    refuse_unsupported(body, fields);
    request.unknown = take_unknown(body, limits);
    return request;
  });
}

detokenize_request parse_detokenize_request(std::string_view text, const api_limits& limits) {
  return parse_body(text, limits, [&](json_object_reader& body) {
    detokenize_request request;
    request.model = body.optional_string("model", {1, 256}).value_or("");
    request.tokens =
        read_token_ids(body.require("tokens"), "tokens", limits, 0, limits.json.array_items);
    request.unknown = take_unknown(body, limits);
    return request;
  });
}

chaos_request parse_chaos_request(std::string_view text) {
  api_limits limits;
  limits.strict = true; // a misspelt target must not become another one
  return parse_body(text, limits, [&](json_object_reader& body) {
    chaos_request request;
    request.action = json_string(body.require("action"), "action", {1, 32});
    request.target = body.optional_string("target", {0, 80}).value_or("");
    request.duration_ms =
        body.optional<uint32_t>("duration_ms", {1, 600'000}).value_or(request.duration_ms);
    take_unknown(body, limits);
    return request;
  });
}

scale_request parse_scale_request(std::string_view text) {
  api_limits limits;
  limits.strict = true;
  return parse_body(text, limits, [&](json_object_reader& body) {
    scale_request request;
    request.pool = json_string(body.require("pool"), "pool", {1, 64});
    body.require("members");
    request.members = body.optional<uint32_t>("members", {0, 1'000'000}).value_or(0);
    if (const auto* cut = body.find("partition")) {
      request.partition = json_string(*cut, "partition", {1, 64});
      if (request.partition != "heads" && request.partition != "requests")
        throw invalid_value("partition", "partition must be heads or requests");
    }
    request.kv_bytes = body.optional<uint64_t>("kv_bytes", {uint64_t{1} << 20, uint64_t{1} << 46});
    take_unknown(body, limits);
    return request;
  });
}

std::string parse_drain_request(std::string_view text) {
  api_limits limits;
  limits.strict = true;
  return parse_body(text, limits, [&](json_object_reader& body) {
    auto worker = json_string(body.require("worker"), "worker", {1, 256});
    take_unknown(body, limits);
    return worker;
  });
}

uint32_t resolve_max_tokens(const generation_params& params, uint64_t prompt_tokens,
                            uint64_t context, size_t prompts, const api_limits& limits,
                            std::string_view prompt_field) {
  if (limits.prompt_tokens && prompt_tokens > *limits.prompt_tokens)
    throw prompt_too_long(prompt_tokens, *limits.prompt_tokens, std::string(prompt_field));
  const uint64_t room = context > prompt_tokens ? context - prompt_tokens : 0;
  const uint64_t least = std::max<uint64_t>(params.min_tokens, 1);
  const uint64_t answer = params.max_tokens.value_or(least); // 0: the prompt alone must fit
  if (prompt_tokens > context || answer > room)
    throw context_length_exceeded(
        prompt_tokens, answer, context,
        std::string(room > 0 && params.max_tokens ? params.max_tokens_field : prompt_field),
        params.max_tokens_field);
  generation_params resolved = params;
  if (!resolved.max_tokens) {
    // What was not asked for must not be refused: the default also fits the request's own budget.
    const uint64_t share = limits.tokens_per_request / (uint64_t{params.drawn()} * prompts);
    const uint64_t usual = std::max<uint64_t>(limits.default_max_tokens, params.min_tokens);
    resolved.max_tokens =
        static_cast<uint32_t>(std::max<uint64_t>(1, std::min({room, usual, share})));
  }
  check_combinations(resolved);
  check_budget(resolved, prompts, limits);
  return *resolved.max_tokens;
}

void check_content(const http_headers& headers) {
  const auto lower = [](std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
  };
  for (const auto& [name, value] : headers)
    if (lower(name) == "content-encoding" && !value.empty() && lower(value) != "identity")
      throw unsupported_content_coding(value);
  const auto said = headers.get("content-type");
  const auto type = lower(said.substr(0, said.find(';')));
  const bool json =
      type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"));
  if (!type.empty() && !json) throw unsupported_media_type(said);
}

} // namespace lamella::net
