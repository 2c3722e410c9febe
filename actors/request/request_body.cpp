#include "actors/request/request_body.hpp"

#include "actors/request/prompt_tokens.hpp"
#include "model/chat/tool_grammar.hpp"
#include "model/tokenizer/detokenizer.hpp"
#include "net/api/api_fields.hpp"
#include "net/api/api_keys.hpp"
#include "net/api/messages_request.hpp"
#include "net/api/messages_writer.hpp"
#include "net/api/responses/responses_writer.hpp"
#include "net/http/http_ids.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

auto completion_writer(net::stream_chunks::style style, const net::generation_params& p) {
  return [style, usage = p.include_usage,
          continuous = p.continuous_usage](const net::response_head& head) {
    return net::make_completion_writer(style, head, usage, continuous);
  };
}

/// What the beginning that an answer goes on with says of it: the mark may be any number of tokens
/// before the end of the prompt. `otherwise`: where it says nothing.
model::reasoning_start reasoning_start_within(std::string_view said,
                                              const model::reasoning_marks& marks,
                                              model::reasoning_start otherwise) {
  const auto first = said.find_first_not_of(" \n");
  if (first == said.npos) return otherwise;
  const auto text = said.substr(first);
  const bool reasons = text.starts_with(marks.begin) && text.find(marks.end) == text.npos;
  return reasons ? model::reasoning_start::begun : model::reasoning_start::closed;
}

/// How an answer to this prompt reasons. A call that no mark tells from text cannot be told from
/// reasoning either, unless the prompt has begun that. `continued`: null where the answer goes on
/// with no message.
model::answer_reasoning reasoning_of(const service& s, const std::vector<token_id>& prompt,
                                     const net::tool_use& tools,
                                     const net::chat_message* continued) {
  constexpr size_t end_tokens = 32;
  if (!s.reasoning.any()) return {};
  std::string end;
  for (auto i = prompt.size() - std::min(prompt.size(), end_tokens); i < prompt.size(); ++i)
    end += s.text->token_bytes(prompt[i]);
  model::answer_reasoning x{s.reasoning, model::reasoning_start_of(end, s.reasoning)};
  if (continued != nullptr && s.reasoning.form == model::answer_form::marks)
    x.start = reasoning_start_within(continued->content, s.reasoning, x.start);
  const bool unmarked = tools.active() && s.tool_calls.mark().empty();
  if (unmarked && x.start == model::reasoning_start::open) x.start = model::reasoning_start::closed;
  return x;
}

/// The message that the answer goes on with.
const net::chat_message* continued_by(const net::chat_request& body) {
  return body.end == net::prompt_end::continues ? &body.messages.back() : nullptr;
}

void read_chat(request_reading& to, const service& s, std::string_view text) {
  auto body = net::parse_chat_request(text, s.rules.limits);
  check_model(s, body.model);
  to.params = std::move(body.params);
  to.choices = to.params.n;
  to.prompts.push_back(
      chat_tokens(s, body.messages, body.tools, body.template_kwargs, body.end, longest_prompt(s)));
  to.tools = std::move(body.tools);
  to.reasoning = reasoning_of(s, to.prompts.back(), to.tools, continued_by(body));
  to.model = body.model;
  to.id_prefix = "chatcmpl-";
  to.writer_of = completion_writer(net::stream_chunks::style::chat, to.params);
  to.ignored_fields = note_unknown(s, body.unknown);
}

void read_completion(request_reading& to, const service& s, std::string_view text) {
  auto body = net::parse_completion_request(text, s.rules.limits);
  check_model(s, body.model);
  to.params = std::move(body.params);
  to.choices = to.params.drawn();
  to.echo = body.echo;
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
  to.id_prefix = "cmpl-";
  to.writer_of = completion_writer(net::stream_chunks::style::completion, to.params);
  to.ignored_fields = note_unknown(s, body.unknown);
}

/// The conversation that a response continues, with what it adds.
std::vector<net::chat_message> continued(const service& s, const net::responses_request& body,
                                         uint64_t caller) {
  const auto& id = body.facts.previous_id;
  if (id.empty()) return body.chat.messages;
  if (!s.responses)
    throw net::unsupported_parameter("previous_response_id",
                                     "previous_response_id is not supported: this server keeps no "
                                     "responses, send the whole conversation as input");
  const auto before = s.responses->find(id, caller, s.world.date());
  if (!before) throw net::response_not_found(id, "previous_response_id");
  auto messages = before->messages;
  messages.insert(messages.end(), body.chat.messages.begin(), body.chat.messages.end());
  if (messages.size() > s.rules.limits.messages)
    throw net::invalid_value("previous_response_id",
                             "the conversation has " + std::to_string(messages.size())
                                 + " messages, at most " + std::to_string(s.rules.limits.messages)
                                 + " are allowed");
  return messages;
}

/// Where an answer goes that is to be kept.
struct response_keeper {
  std::shared_ptr<response_store> store;
  std::function<response_store::time()> date;
  uint64_t caller = 0;
  std::vector<net::chat_message> messages; ///< before the answer

  net::keep_response of(const std::string& id) const {
    if (!store) return {};
    return [me = *this, id](const std::string& body, net::chat_message answer) {
      auto all = me.messages;
      all.push_back(std::move(answer));
      me.store->add({id, me.caller, body, std::move(all)}, me.date());
    };
  }
};

/// Returns the bytes that are kept until the answer is complete: what it repeats, and what is to be
/// continued.
size_t read_response(request_reading& to, const service& s, std::string_view text,
                     uint64_t caller) {
  auto body = net::parse_responses_request(text, s.rules.limits);
  auto& chat = body.chat;
  check_model(s, chat.model);
  to.params = std::move(chat.params);
  to.choices = to.params.n;
  auto conversation = continued(s, body, caller);
  auto told = conversation;
  if (body.facts.instructions)
    told.insert(told.begin(), net::chat_message{"system", *body.facts.instructions, {}});
  try {
    to.prompts.push_back(
        chat_tokens(s, told, chat.tools, chat.template_kwargs, chat.end, longest_prompt(s)));
  } catch (net::api_error& error) {
    if (error.param == "messages") error.param = "input";
    throw;
  }
  to.tools = std::move(chat.tools);
  to.reasoning = reasoning_of(s, to.prompts.back(), to.tools, nullptr);
  to.model = chat.model;
  to.id_prefix = "resp_";
  body.facts.store = body.facts.store && s.responses;
  const auto kept = body.facts.bytes() + (body.facts.store ? bytes_of(conversation) : 0);
  response_keeper keeper;
  if (body.facts.store) keeper = {s.responses, s.world.date, caller, std::move(conversation)};
  to.writer_of = [keeper = std::move(keeper),
                  facts = std::move(body.facts)](const net::response_head& head) {
    return net::make_responses_writer(head, facts, keeper.of(head.id));
  };
  to.ignored_fields = note_unknown(s, chat.unknown);
  return kept;
}

void read_message(request_reading& to, const service& s, std::string_view text) {
  auto body = net::parse_messages_request(text, s.rules.limits);
  check_model(s, body.model);
  to.params = std::move(body.params);
  to.prompts.push_back(
      chat_tokens(s, body.messages, body.tools, body.template_kwargs, body.end, longest_prompt(s)));
  // This API wants a bound of every answer, so clients send a large one: it is an upper bound, and
  // an answer may end because the context is full.
  const auto context = tokens_of_a_sequence(s), used = uint64_t{to.prompts.back().size()};
  const auto left = context > used ? context - used : 0;
  const auto room = std::min<uint64_t>(left, s.rules.limits.tokens_per_request);
  const bool clipped = room > 0 && *to.params.max_tokens > room;
  if (clipped) to.params.max_tokens = static_cast<uint32_t>(room);
  to.tools = std::move(body.tools);
  to.reasoning = reasoning_of(s, to.prompts.back(), to.tools, continued_by(body));
  to.model = body.model;
  to.id_prefix = "msg_";
  to.writer_of = [fills = clipped && room == left](const net::response_head& head) {
    return net::make_messages_writer(head, fills);
  };
  to.ignored_fields = note_unknown(s, body.unknown);
}

/// Log probabilities of prompts, if they are wanted: bounded. Returns the bytes that they take.
size_t ask_for_scores(request_reading& to, const service& s) {
  constexpr size_t of_token = sizeof(sampled_token), of_value = 2 * sizeof(gpu::token_logprob);
  const auto& p = to.params;
  std::optional<uint32_t> alternatives = p.prompt_logprobs;
  if (to.echo && p.logprobs) alternatives = std::max(alternatives.value_or(0), *p.logprobs);
  if (!alternatives) return 0;
  uint64_t tokens = 0;
  for (const auto& prompt : to.prompts) tokens += prompt.size();
  net::check_prompt_logprobs(tokens, *alternatives, to.choices, s.rules.limits,
                             p.prompt_logprobs ? "prompt_logprobs" : "logprobs");
  to.scored = *alternatives + 1;
  return tokens * (of_token + of_value * *alternatives);
}

/// Bytes by which the prompts, echoed before each choice, are more than what the body had of them.
size_t echoed_bytes(const request_reading& x) {
  size_t bytes = 0;
  if (x.echo)
    for (const auto& text : x.prompt_texts) bytes += text.size() * (x.params.n - size_t{1});
  return bytes;
}

/// What takes the place of the body in the memory for bodies, from before the first device works.
void hold(request_reading& to, net::http_body body, size_t bytes) {
  body.text.clear();
  body.text.shrink_to_fit();
  if (!body.share.hold(bytes))
    throw net::no_capacity("the memory for request bodies, of which log probabilities of prompts, "
                           "echoes and what responses repeat are a part, is full "
                           "(limits.bodies_bytes): retry soon");
  to.share = std::move(body.share);
}

/// Everything that can be refused is refused here or while its format is compiled, before any
/// device has worked: parses and checks the body, makes the prompts' tokens and bounds the answer.
void read(request_reading& to, const service& s, net::http_exchange& exchange, net::api_route route,
          uint64_t caller) {
  net::check_content(exchange.request().headers);
  auto body = exchange.take_body();
  const char* prompt_field = "messages";
  size_t kept = 0;
  if (route == net::api_route::completions) {
    read_completion(to, s, body.text);
    prompt_field = "prompt";
  } else if (route == net::api_route::responses) {
    kept = read_response(to, s, body.text, caller);
    prompt_field = "input";
  } else if (route == net::api_route::messages) {
    read_message(to, s, body.text);
  } else {
    read_chat(to, s, body.text);
  }
  uint64_t longest = 0;
  for (const auto& p : to.prompts) longest = std::max<uint64_t>(longest, p.size());
  to.max_tokens = net::resolve_max_tokens(to.params, longest, tokens_of_a_sequence(s),
                                          to.prompts.size(), s.rules.limits, prompt_field);
  kept += ask_for_scores(to, s) + echoed_bytes(to);
  hold(to, std::move(body), kept);
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
      x->constraint =
          server->constraints->make(format_of(*x), x->tools, server->tool_calls, x->reasoning);
    });
    tell();
  };
  const auto size = st.exchange->request().body.size();
  self->send(st.server->aside,
             aside_job{lane_of(size), [x, tell, compile, server = st.server, exchange = st.exchange,
                                       route = st.route, caller = st.cache_scope] {
                         if (!exchange->open()) return;
                         bool complete = false;
                         take_step(*x, [&] {
                           read(*x, *server, *exchange, route, caller);
                           x->ignored_keywords = ignored_keywords(format_of(*x), x->tools,
                                                                  server->rules.limits.strict);
                           complete = server->constraints->find(format_of(*x), x->tools,
                                                                x->constraint, x->reasoning);
                         });
                         if (complete || x->refusal) return tell();
                         caf::anon_send(server->aside, aside_job{aside_lane::formats, compile});
                       }});
}

namespace {

/// How calls of the tools of this request are written; nothing where it has none.
std::optional<model::tool_dialect> calls_of(const request_state& st) {
  if (!st.tools.active()) return {};
  auto dialect = st.server->tool_calls;
  if (!dialect.parameters) return dialect;
  std::vector<model::tool_signature> tools;
  for (const auto& x : st.tools.tools) tools.push_back({x.name, &x.parameters});
  dialect.texts = model::text_parameters(tools);
  return dialect;
}

} // namespace

void prepare(request_state& st, request_reading&& x) {
  st.params = std::move(x.params);
  st.tools = std::move(x.tools);
  st.ignored_keywords = std::move(x.ignored_keywords);
  st.ignored_fields = std::move(x.ignored_fields);
  st.constraint = std::move(x.constraint);
  st.choices = x.choices;
  st.echo = x.echo;
  st.prompts = std::move(x.prompts);
  st.prompt_texts = std::move(x.prompt_texts);
  st.prompt_ends = std::move(x.prompt_ends);
  st.scored = x.scored;
  st.scores.resize(st.prompts.size());
  st.share = std::move(x.share);
  st.max_tokens = x.max_tokens;
  st.cache_scope = net::cache_scope(st.cache_scope, st.params.cache_salt);
  const auto& world = st.server->world;
  const auto seed =
      st.params.sampling.seed ? static_cast<uint64_t>(*st.params.sampling.seed) : world.chance();
  st.sequences.resize(st.prompts.size() * st.choices);
  const auto calls = calls_of(st);
  for (size_t i = 0; i < st.sequences.size(); ++i) {
    auto& s = st.sequences[i];
    s.seed = seed;
    // A message is a text of its own; a completion goes on after its prompt.
    std::optional<model::token_id> before;
    if (st.route == net::api_route::completions) before = st.prompts[i / st.choices].back();
    std::string unfinished;
    if (st.echo) unfinished = st.prompt_ends[i / st.choices];
    s.text.emplace(*st.server->text, st.params, before, calls ? &*calls : nullptr,
                   std::move(unfinished), x.reasoning.marks.any() ? &x.reasoning : nullptr);
  }
  const auto high = world.chance(), low = world.chance();
  st.head.model = std::move(x.model);
  st.head.id = net::make_response_id(x.id_prefix, high, low);
  if (st.tools.active()) st.call_ids = {world.chance(), world.chance()};
  st.head.created = world.seconds_since_1970();
  st.head.fingerprint = st.server->fingerprint;
  st.head.service_tier = st.params.echo_service_tier;
  st.writer = x.writer_of(st.head);
  uint64_t prompt_tokens = 0;
  for (const auto& p : st.prompts) prompt_tokens += p.size();
  st.server->metrics->tokens_prompted(prompt_tokens);
  spdlog::debug("request={} seed={}", static_cast<uint64_t>(st.id), seed);
}

} // namespace lamella::actors
