#include "actors/request_body.hpp"

#include "net/api_keys.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

void read_chat(request_state& st) {
  auto body = net::parse_chat_request(st.exchange->request().body, st.server->rules.limits);
  check_model(*st.server, body.model);
  st.params = std::move(body.params);
  st.choices = st.params.n;
  st.prompts.push_back(
      chat_tokens(*st.server, body.messages, body.tools, body.template_kwargs, true));
  st.tools = std::move(body.tools);
  st.head.model = body.model;
  for (const auto& name : body.unknown) st.server->numbers->unknown_param(name);
}

void read_completion(request_state& st) {
  auto body = net::parse_completion_request(st.exchange->request().body, st.server->rules.limits);
  check_model(*st.server, body.model);
  st.params = std::move(body.params);
  st.choices = std::max(st.params.n, body.best_of);
  st.echo = body.echo;
  if (st.echo && st.params.logprobs)
    throw net::unsupported_parameter("echo", "echo together with logprobs is not supported");
  for (const auto& prompt : body.prompts) {
    st.prompts.push_back(prompt_tokens(*st.server, prompt, body.parse_special));
    if (st.prompts.back().empty())
      throw net::invalid_value("prompt", "the prompt is empty; give at least one token");
    if (st.echo)
      st.prompt_texts.push_back(std::holds_alternative<std::string>(prompt)
                                    ? std::get<std::string>(prompt)
                                    : st.server->text->decode(st.prompts.back()));
  }
  st.head.model = body.model;
  for (const auto& name : body.unknown) st.server->numbers->unknown_param(name);
}

} // namespace

void read_body(request_state& st) {
  net::check_content(st.exchange->request().headers);
  const char* field = st.chat ? "messages" : "prompt";
  st.chat ? read_chat(st) : read_completion(st);
  st.constraint = st.server->constraints->find(st.params.format ? &*st.params.format : nullptr,
                                               st.tools, st.server->tool_calls);
  st.cache_scope = net::cache_scope(st.cache_scope, st.params.cache_salt);
  uint64_t longest = 0;
  for (const auto& p : st.prompts) longest = std::max<uint64_t>(longest, p.size());
  const auto& server = *st.server;
  const auto room = server.slots > server.window_slots ? server.slots - server.window_slots : 0;
  st.max_tokens = net::resolve_max_tokens(st.params, longest, std::min(server.context_tokens, room),
                                          st.prompts.size(), server.rules.limits, field);
}

void prepare(request_state& st) {
  const auto& world = st.server->world;
  const auto seed =
      st.params.sampling.seed ? static_cast<uint64_t>(*st.params.sampling.seed) : world.chance();
  st.sequences.resize(st.prompts.size() * st.choices);
  for (size_t i = 0; i < st.sequences.size(); ++i) {
    auto& s = st.sequences[i];
    s.seed = seed;
    // A message is a text of its own; a completion goes on after its prompt.
    std::optional<model::token_id> before;
    if (!st.chat) before = st.prompts[i / st.choices].back();
    s.text.emplace(*st.server->text, st.params, before,
                   st.tools.active() ? &st.server->tool_calls : nullptr);
  }
  const auto high = world.chance(), low = world.chance();
  st.head.id = net::make_response_id(st.chat ? "chatcmpl-" : "cmpl-", high, low);
  if (st.tools.active()) st.call_ids = {world.chance(), world.chance()};
  st.head.created = world.seconds_since_1970();
  st.head.fingerprint = st.server->fingerprint;
  st.head.service_tier = st.params.echo_service_tier;
  st.chunks.emplace(st.chat ? net::stream_chunks::style::chat
                            : net::stream_chunks::style::completion,
                    st.head, st.params.include_usage, st.params.continuous_usage);
  uint64_t prompt_tokens = 0;
  for (const auto& p : st.prompts) prompt_tokens += p.size();
  st.server->numbers->tokens_prompted(prompt_tokens);
  spdlog::debug("request={} seed={}", static_cast<uint64_t>(st.id), seed);
}

} // namespace lamella::actors
