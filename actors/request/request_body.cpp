#include "actors/request/request_body.hpp"

#include "actors/protocol/requests.hpp"
#include "actors/request/prompt_tokens.hpp"
#include "model/tokenizer/detokenizer.hpp"
#include "net/api/api_keys.hpp"
#include "net/http/http_ids.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

void read_chat(request_reading& to, const service& s, std::string_view text) {
  auto body = net::parse_chat_request(text, s.rules.limits);
  check_model(s, body.model);
  to.params = std::move(body.params);
  to.choices = to.params.n;
  to.prompts.push_back(
      chat_tokens(s, body.messages, body.tools, body.template_kwargs, true, longest_prompt(s)));
  to.tools = std::move(body.tools);
  to.model = body.model;
  for (const auto& name : body.unknown) s.metrics->unknown_param(name);
}

void read_completion(request_reading& to, const service& s, std::string_view text) {
  auto body = net::parse_completion_request(text, s.rules.limits);
  check_model(s, body.model);
  to.params = std::move(body.params);
  to.choices = std::max(to.params.n, body.best_of);
  to.echo = body.echo;
  if (to.echo && to.params.logprobs)
    throw net::unsupported_parameter("echo", "echo together with logprobs is not supported");
  for (const auto& prompt : body.prompts) {
    to.prompts.push_back(prompt_tokens(s, prompt, body.markers, true, longest_prompt(s)));
    if (to.prompts.back().empty())
      throw net::invalid_value("prompt", "the prompt is empty; give at least one token");
    if (!to.echo) continue;
    const auto* words = std::get_if<std::string>(&prompt);
    const auto& ids = to.prompts.back();
    to.prompt_ends.push_back(words != nullptr ? "" : model::unfinished_end(*s.text, ids));
    to.prompt_texts.push_back(words != nullptr ? *words : s.text->decode(ids));
    auto& shown = to.prompt_texts.back();
    shown.resize(shown.size() - to.prompt_ends.back().size());
  }
  to.model = body.model;
  for (const auto& name : body.unknown) s.metrics->unknown_param(name);
}

/// Everything that can be refused is refused here or while its format is compiled, before any
/// device has worked: parses and checks the body, makes the prompts' tokens and bounds the answer.
void read(request_reading& to, const service& s, net::http_exchange& exchange, bool chat) {
  net::check_content(exchange.request().headers);
  const auto body = exchange.take_body();
  chat ? read_chat(to, s, body.text) : read_completion(to, s, body.text);
  uint64_t longest = 0;
  for (const auto& p : to.prompts) longest = std::max<uint64_t>(longest, p.size());
  to.max_tokens =
      net::resolve_max_tokens(to.params, longest, tokens_of_a_sequence(s), to.prompts.size(),
                              s.rules.limits, chat ? "messages" : "prompt");
}

/// Takes a step of the reading; what it throws is what the request is refused with.
template <class Step> void take_step(request_reading& x, const Step& step) {
  try {
    step();
  } catch (const net::api_error& error) {
    x.refusal = error;
  } catch (const std::exception& error) {
    x.refusal = net::internal_error(error.what());
  }
}

const net::output_format* format_of(const request_reading& x) {
  return x.params.format ? &*x.params.format : nullptr;
}

} // namespace

void begin_reading(request_ptr self) {
  const auto& st = self->state;
  const auto x = std::make_shared<request_reading>();
  const auto tell = [x, me = caf::actor_cast<request_actor>(self)] {
    caf::anon_send(me, request_reading_ptr{x});
  };
  const auto compile = [x, tell, server = st.server, exchange = st.exchange] {
    if (!exchange->open()) return;
    take_step(*x, [&] {
      x->constraint = server->constraints->make(format_of(*x), x->tools, server->tool_calls);
    });
    tell();
  };
  const auto size = st.exchange->request().body.size();
  self->send(st.server->aside,
             aside_job{lane_of(size), [x, tell, compile, server = st.server, exchange = st.exchange,
                                       chat = st.chat] {
                         if (!exchange->open()) return;
                         bool complete = false;
                         take_step(*x, [&] {
                           read(*x, *server, *exchange, chat);
                           complete =
                               server->constraints->find(format_of(*x), x->tools, x->constraint);
                         });
                         if (complete || x->refusal) return tell();
                         caf::anon_send(server->aside, aside_job{aside_lane::formats, compile});
                       }});
}

void prepare(request_state& st, request_reading&& x) {
  st.params = std::move(x.params);
  st.tools = std::move(x.tools);
  st.constraint = std::move(x.constraint);
  st.choices = x.choices;
  st.echo = x.echo;
  st.prompts = std::move(x.prompts);
  st.prompt_texts = std::move(x.prompt_texts);
  st.max_tokens = x.max_tokens;
  st.cache_scope = net::cache_scope(st.cache_scope, st.params.cache_salt);
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
    std::string unfinished;
    if (st.echo) unfinished = x.prompt_ends[i / st.choices];
    s.text.emplace(*st.server->text, st.params, before,
                   st.tools.active() ? &st.server->tool_calls : nullptr, std::move(unfinished));
  }
  const auto high = world.chance(), low = world.chance();
  st.head.model = std::move(x.model);
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
  st.server->metrics->tokens_prompted(prompt_tokens);
  spdlog::debug("request={} seed={}", static_cast<uint64_t>(st.id), seed);
}

} // namespace lamella::actors
