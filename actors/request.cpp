#include "actors/request.hpp"

#include "actors/answer.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;

/// The longest time between two looks at the deadline.
constexpr caf::timespan deadline_check{std::chrono::seconds{1}};

/// How long a request waits for its admission before a stream is opened for it.
constexpr std::chrono::milliseconds open_after{250};

/// The requester's own patience is the deadline; questions only outlive it a little.
caf::timespan patience(request_ptr self) {
  return self->state.server->deadline + std::chrono::seconds{30};
}

sequence_id id_of(const request_state& st, size_t index) {
  return scheduler::sequence_of(st.id, static_cast<uint32_t>(index));
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

uint64_t draw_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// --- ends ----------------------------------------------------------------------------------------

/// The one line per request, and its numbers.
void report(request_ptr self, net::request_outcome outcome, int status, const std::string& code) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto usage = usage_of(st);
  net::request_times times;
  times.e2e = seconds(now - st.arrived);
  times.queue = st.has_started ? seconds(st.started - st.arrived) : times.e2e;
  if (st.has_first_token) {
    times.prefill = seconds(st.first_token - st.started);
    times.decode = seconds(now - st.first_token);
  }
  times.prompt_tokens = usage.prompt_tokens;
  times.generated_tokens = usage.completion_tokens;
  times.max_tokens = st.max_tokens;
  times.n = st.params.n;
  times.end = net::request_end::abort;
  if (outcome == net::request_outcome::done && !st.sequences.empty())
    times.end = st.sequences.front().text->reason() == finish::length ? net::request_end::length
                                                                      : net::request_end::stop;
  st.server->numbers->http_request(st.chat ? "/v1/chat/completions" : "/v1/completions", "POST",
                                   status, times.e2e);
  st.server->numbers->request_ended(outcome, code);
  if (outcome != net::request_outcome::rejected) st.server->numbers->request_finished(times);
  const char* names[] = {"done", "error", "cancelled", "rejected"};
  spdlog::info("request_id={} request={} outcome={} code={} prompt_tokens={} generated_tokens={} "
               "choices={} queue_ms={:.1f} ttft_ms={:.1f} e2e_ms={:.1f}",
               st.exchange->request().request_id, static_cast<uint64_t>(st.id),
               names[static_cast<size_t>(outcome)], code.empty() ? "-" : code, times.prompt_tokens,
               times.generated_tokens, st.sequences.size(), times.queue * 1e3,
               (st.has_first_token ? seconds(st.first_token - st.arrived) : 0) * 1e3,
               times.e2e * 1e3);
}

/// Quits when nothing is owed to anybody: all sequences over and all questions answered.
void quit_if_idle(request_ptr self) {
  const auto& st = self->state;
  if (st.answered && !st.writing && st.open_questions == 0) self->quit();
}

/// Stops everything that still runs for this request. Slots held by a prefill are given back when
/// it has answered; a batch gives back by itself.
void stop_work(request_ptr self) {
  auto& st = self->state;
  for (size_t i = 0; i < st.sequences.size(); ++i) {
    auto& s = st.sequences[i];
    if (s.where == phase::waiting) {
      self->send(st.server->scheduler, withdraw{id_of(st, i)});
    } else if (s.where == phase::prefilling) {
      for (const auto& worker : st.server->prefill_workers)
        self->send(worker, prefill_cancel{id_of(st, i)});
    } else if (s.where == phase::decoding) {
      for (const auto& b : st.server->batches) self->send(b, batch_leave{id_of(st, i)});
      s.where = phase::done;
    }
  }
}

void fail(request_ptr self, const net::api_error& error,
          net::request_outcome outcome = net::request_outcome::error) {
  auto& st = self->state;
  if (st.answered) return;
  refuse(self, error);
  report(self, outcome, st.streaming ? 200 : error.status, error.code);
  stop_work(self);
  quit_if_idle(self);
}

/// An error between actors in the words of the API.
net::api_error api_error_of(const caf::error& reason, caf::actor_system& system) {
  if (reason == ec::queue_full || reason == ec::queue_tokens) return net::queue_full(1000);
  if (reason == ec::draining) return net::draining();
  if (reason == ec::never_fits) return net::no_capacity(system.render(reason));
  if (reason == ec::device_lost || reason == ec::deadline)
    return net::recovery_failed(system.render(reason));
  return net::internal_error(system.render(reason));
}

void give_back(request_ptr self, size_t index) {
  auto& st = self->state;
  st.sequences[index].where = phase::done;
  self->send(st.server->allocator, kv_release{{id_of(st, index)}});
  self->send(st.server->scheduler, retire{id_of(st, index)});
}

// --- the way of a prompt -------------------------------------------------------------------------

void ask_admission(request_ptr self, size_t first, uint32_t choices, bool resumed);

sampling sampling_of(const request_state& st, size_t index) {
  const auto& p = st.params.sampling;
  sampling out;
  out.seed = st.sequences[index].seed;
  out.choice = static_cast<uint32_t>(index % st.choices);
  out.temperature = static_cast<float>(p.temperature);
  out.top_k = p.top_k;
  out.top_p = static_cast<float>(p.top_p);
  out.min_p = static_cast<float>(p.min_p);
  out.presence_penalty = static_cast<float>(p.presence_penalty);
  out.frequency_penalty = static_cast<float>(p.frequency_penalty);
  out.repetition_penalty = static_cast<float>(p.repetition_penalty);
  out.min_tokens = st.params.min_tokens;
  if (st.params.logprobs)
    out.logprobs = *st.params.logprobs + 1;
  else if (st.choices > st.params.n)
    out.logprobs = 1; // to pick the best
  out.bias.assign(p.logit_bias.begin(), p.logit_bias.end());
  if (!st.params.ignore_eos) out.end_tokens = st.server->end_tokens;
  out.end_tokens.insert(out.end_tokens.end(), st.params.stop_token_ids.begin(),
                        st.params.stop_token_ids.end());
  return out;
}

/// Prompt and what was generated: all that a prefill needs, the first time and after a preemption.
std::vector<token_id> tokens_of(const request_state& st, size_t index) {
  auto tokens = st.prompts[index / st.choices];
  const auto& generated = st.sequences[index].text->tokens();
  tokens.insert(tokens.end(), generated.begin(), generated.end());
  return tokens;
}

std::vector<logit_edit> edits_of(const request_state& st, size_t index, const sampling& wanted) {
  if (!wanted.needs_history() && wanted.bias.empty()) return {};
  model::token_history history;
  history.prompt(st.prompts[index / st.choices]);
  for (auto t : st.sequences[index].text->tokens()) history.generated(t);
  return history.edits(wanted);
}

void accept_token(request_ptr self, size_t index, const sampled_token& drawn, finish reason) {
  auto& st = self->state;
  auto& s = st.sequences[index];
  if (s.text->over()) return;
  const auto now = self->clock().now();
  if (!st.has_first_token) {
    st.has_first_token = true;
    st.first_token = now;
    st.server->numbers->first_token(seconds(now - st.arrived));
  } else if (!s.text->tokens().empty()) {
    st.server->numbers->token_gap(seconds(now - s.last_token));
  }
  s.last_token = now;
  st.server->numbers->tokens_generated(1);
  s.text->push(drawn, reason);
}

void speak_and_finish(request_ptr self) {
  auto& st = self->state;
  if (st.answered) return;
  speak(self);
  if (st.answered) report(self, net::request_outcome::done, 200, {});
  quit_if_idle(self);
}

void join(request_ptr self, size_t index, const admitted& place, const kv_holding& holding,
          const sampling& wanted) {
  auto& st = self->state;
  auto& s = st.sequences[index];
  s.where = phase::decoding;
  batch_join x;
  x.sequence = id_of(st, index);
  x.client = caf::actor_cast<decode_client_actor>(self);
  x.member = holding.member;
  x.runs = holding.runs;
  const auto generated = s.text->tokens().size();
  x.position = static_cast<uint32_t>(st.prompts[index / st.choices].size() + generated - 1);
  x.last = s.text->tokens().back();
  x.generated = static_cast<uint32_t>(generated);
  x.max_tokens = st.max_tokens;
  x.wanted = wanted;
  x.ignore_end = wanted.end_tokens.empty();
  if (wanted.needs_history()) {
    x.history_prompt = st.prompts[index / st.choices];
    x.history_output = s.text->tokens();
  }
  self->send(st.server->batches.at(static_cast<uint32_t>(place.batch)), std::move(x));
}

/// The first tokens of a prompt's choices, or of one resumed choice, are there.
void on_prefilled(request_ptr self, size_t first, const admitted& place,
                  const std::vector<sampling>& wanted, const prefilled& x) {
  auto& st = self->state;
  for (size_t k = 0; k < x.tokens.size(); ++k) {
    const auto index = first + k;
    auto& s = st.sequences[index];
    const auto& drawn = x.tokens[k];
    if (st.answered || !drawn.finite) {
      give_back(self, index);
      if (!st.answered) fail(self, net::internal_error("the model's logits are not finite"));
      continue;
    }
    const auto& ends = wanted[k].end_tokens;
    auto reason = finish::none;
    if (std::find(ends.begin(), ends.end(), drawn.token) != ends.end())
      reason = finish::stop;
    else if (s.text->tokens().size() + 1 >= st.max_tokens)
      reason = finish::length;
    accept_token(self, index, drawn, reason);
    if (s.text->over())
      give_back(self, index);
    else
      join(self, index, place, place.holdings[k], wanted[k]);
  }
  speak_and_finish(self);
}

void on_admitted(request_ptr self, size_t first, uint32_t choices, const admitted& place) {
  auto& st = self->state;
  if (!st.has_started) {
    st.has_started = true;
    st.started = self->clock().now();
  }
  if (st.answered) { // cancelled while the answer was under way
    for (uint32_t k = 0; k < choices; ++k) give_back(self, first + k);
    return;
  }
  prefill x;
  x.first = id_of(st, first);
  x.tokens = tokens_of(st, first);
  x.member = place.holdings.front().member;
  x.runs = place.holdings.front().runs;
  for (uint32_t k = 0; k < choices; ++k) {
    const auto index = first + k;
    st.sequences[index].where = phase::prefilling;
    x.samplings.push_back(sampling_of(st, index));
    x.draws.push_back(static_cast<uint32_t>(st.sequences[index].text->tokens().size()));
    x.edits.push_back(edits_of(st, index, x.samplings.back()));
  }
  ++st.open_questions;
  auto wanted = x.samplings;
  const auto epoch = st.server->epoch;
  self->request(st.server->prefill_workers.at(place.prefill_worker), patience(self), std::move(x))
      .then(
          [=](const prefilled& answer) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            on_prefilled(self, first, place, wanted, answer);
            quit_if_idle(self);
          },
          [=](caf::error& reason) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            if (peer_lost(reason)) return quit_if_idle(self);
            for (uint32_t k = 0; k < choices; ++k) give_back(self, first + k);
            fail(self, api_error_of(reason, self->system()));
            quit_if_idle(self);
          });
}

void ask_admission(request_ptr self, size_t first, uint32_t choices, bool resumed) {
  auto& st = self->state;
  for (uint32_t k = 0; k < choices; ++k) st.sequences[first + k].where = phase::waiting;
  const auto tokens = static_cast<uint32_t>(tokens_of(st, first).size());
  ++st.open_questions;
  const auto epoch = st.server->epoch;
  self->request(st.server->scheduler, patience(self),
                admit{id_of(st, first), choices, tokens, resumed})
      .then(
          [=](const admitted& place) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            on_admitted(self, first, choices, place);
            quit_if_idle(self);
          },
          [=](caf::error& reason) {
            auto& state = self->state;
            if (state.server->epoch != epoch) return;
            --state.open_questions;
            if (peer_lost(reason)) return quit_if_idle(self);
            for (uint32_t k = 0; k < choices; ++k) state.sequences[first + k].where = phase::done;
            const bool full = reason == ec::queue_full || reason == ec::queue_tokens;
            if (full && !state.answered)
              state.server->numbers->admission_rejected(reason == ec::queue_full
                                                            ? net::rejection::queue_requests
                                                            : net::rejection::queue_tokens);
            if (reason == ec::draining && !state.answered)
              state.server->numbers->admission_rejected(net::rejection::draining);
            fail(self, api_error_of(reason, self->system()), net::request_outcome::rejected);
            quit_if_idle(self);
          });
}

// --- parsing -------------------------------------------------------------------------------------

void read_chat(request_state& st) {
  auto body = net::parse_chat_request(st.exchange->request().body, st.server->limits);
  check_model(*st.server, body.model);
  st.params = std::move(body.params);
  st.choices = st.params.n;
  st.prompts.push_back(chat_tokens(*st.server, body.messages, body.template_kwargs, true));
  st.head.model = body.model;
  for (const auto& name : body.unknown) st.server->numbers->unknown_param(name);
}

void read_completion(request_state& st) {
  auto body = net::parse_completion_request(st.exchange->request().body, st.server->limits);
  check_model(*st.server, body.model);
  st.params = std::move(body.params);
  st.choices = std::max(st.params.n, body.best_of);
  st.echo = body.echo;
  if (st.echo && st.params.logprobs)
    throw net::unsupported_parameter("echo", "echo together with logprobs is not supported");
  for (const auto& prompt : body.prompts) {
    st.prompts.push_back(prompt_tokens(*st.server, prompt));
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

/// Everything that can be refused is refused here, before any device has worked.
void read_body(request_state& st) {
  net::check_content_type(st.exchange->request().headers.get("content-type"));
  const char* field = st.chat ? "messages" : "prompt";
  st.chat ? read_chat(st) : read_completion(st);
  uint64_t longest = 0;
  for (const auto& p : st.prompts) longest = std::max<uint64_t>(longest, p.size());
  const auto& server = *st.server;
  const auto room = server.slots > server.window_slots ? server.slots - server.window_slots : 0;
  st.max_tokens = net::resolve_max_tokens(st.params, longest, std::min(server.context_tokens, room),
                                          st.prompts.size(), server.limits, field);
}

void prepare(request_state& st) {
  uint64_t seed = 0;
  seed = st.params.sampling.seed ? static_cast<uint64_t>(*st.params.sampling.seed) : draw_seed();
  st.sequences.resize(st.prompts.size() * st.choices);
  for (auto& s : st.sequences) {
    s.seed = seed;
    s.text.emplace(*st.server->text, st.params);
  }
  st.head.id = net::make_response_id(st.chat ? "chatcmpl-" : "cmpl-", draw_seed(), draw_seed());
  st.head.created = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
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

/// Looks again every few seconds: a timer cannot be taken back, and one that runs to the deadline
/// would keep what is left of each finished request for as long.
void watch_deadline(request_ptr self) {
  const auto& st = self->state;
  const auto rest = st.arrived + st.server->deadline - self->clock().now();
  self->delayed_send(self, std::clamp<caf::timespan>(rest, caf::timespan{0}, deadline_check),
                     expire_atom_v);
}

void begin(request_ptr self) {
  auto& st = self->state;
  try {
    read_body(st);
  } catch (const net::api_error& error) {
    fail(self, error, net::request_outcome::rejected);
    return;
  } catch (const std::exception& error) {
    fail(self, net::internal_error(error.what()));
    return;
  }
  prepare(st);
  if (st.max_tokens == 0) {
    for (auto& s : st.sequences) {
      s.text->close(finish::length);
      s.where = phase::done;
    }
    speak_and_finish(self);
    return;
  }
  watch_deadline(self);
  if (st.params.stream) self->delayed_send(self, open_after, caf::tick_atom_v);
  for (size_t p = 0; p < st.prompts.size(); ++p)
    ask_admission(self, p * st.choices, st.choices, false);
}

void on_cancel(request_ptr self) {
  auto& st = self->state;
  st.writing = false;
  if (!st.answered) {
    st.answered = true;
    report(self, net::request_outcome::cancelled, 499, {});
    stop_work(self);
  }
  quit_if_idle(self);
}

void on_token(request_ptr self, const token& x) {
  auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (st.answered || index >= st.sequences.size()) return;
  auto& s = st.sequences[index];
  // A batch that ended may have spoken a last time; what it said is computed again.
  if (s.where != phase::decoding) return;
  // A position is committed once; a repeated one is the same token again (reliability A4).
  if (x.index != s.text->tokens().size()) return;
  accept_token(self, index, x.value, x.reason);
  if (s.text->over()) {
    s.where = phase::done;
    if (x.reason == finish::none) // a stop string: the batch does not know yet
      for (const auto& b : st.server->batches) self->send(b, batch_leave{x.sequence});
  }
  speak_and_finish(self);
}

void on_sequence_failed(request_ptr self, const sequence_failed& x) {
  const auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (index < st.sequences.size() && st.sequences[index].where == phase::decoding)
    fail(self, net::internal_error(x.reason));
}

void on_preempted(request_ptr self, sequence_id sequence) {
  auto& st = self->state;
  const auto index = scheduler::index_of(sequence);
  if (st.answered || index >= st.sequences.size() || st.sequences[index].where != phase::decoding)
    return;
  ask_admission(self, index, 1, true);
}

/// The pipeline was rebuilt: what ran on the old one runs again, from the tokens it has. Questions
/// to the old one are never answered.
void on_service(request_ptr self, const service_ptr& server) {
  auto& st = self->state;
  if (server->epoch <= st.server->epoch) return;
  st.server = server;
  st.open_questions = 0;
  if (st.answered) {
    quit_if_idle(self);
    return;
  }
  for (size_t first = 0; first < st.sequences.size(); first += st.choices) {
    const auto begin = st.sequences.begin() + static_cast<ptrdiff_t>(first);
    const bool prefilled_before = std::any_of(
        begin, begin + st.choices, [](const auto& s) { return !s.text->tokens().empty(); });
    if (!prefilled_before) {
      ask_admission(self, first, st.choices, true);
      continue;
    }
    for (size_t i = first; i < first + st.choices; ++i)
      if (!st.sequences[i].text->over()) ask_admission(self, i, 1, true);
  }
}

} // namespace

request_actor::behavior_type request(request_actor::stateful_pointer<request_state> self,
                                     service_ptr server, exchange_ptr exchange, request_id id,
                                     bool chat) {
  auto& st = self->state;
  st.server = std::move(server);
  st.exchange = std::move(exchange);
  st.id = id;
  st.chat = chat;
  st.arrived = st.last_written = self->clock().now();
  st.exchange->on_closed(
      [me = caf::actor_cast<request_actor>(self)] { caf::anon_send(me, cancel_atom_v); });
  return {
      [self](begin_atom) { begin(self); },
      [self](cancel_atom) { on_cancel(self); },
      [self](written_atom) {
        self->state.writing = false;
        speak_and_finish(self);
        quit_if_idle(self);
      },
      [self](caf::tick_atom) {
        ping(self);
        const auto& server_ping = self->state.server->ping;
        if (!self->state.answered && server_ping.count() > 0)
          self->delayed_send(self, std::max<caf::timespan>(server_ping / 4, open_after),
                             caf::tick_atom_v);
      },
      [self](expire_atom) {
        const auto& now = self->state;
        if (now.answered) return;
        if (self->clock().now() - now.arrived < now.server->deadline) return watch_deadline(self);
        fail(self, net::deadline_exceeded("the request did not finish within "
                                          + std::to_string(self->state.server->deadline.count())
                                          + " ms"));
      },
      [self](drain_atom) { fail(self, net::draining()); },
      [self](const token& x) { on_token(self, x); },
      [self](const preempted& x) { on_preempted(self, x.sequence); },
      [self](const service_ptr& rebuilt) { on_service(self, rebuilt); },
      [self](const sequence_failed& x) { on_sequence_failed(self, x); },
  };
}

} // namespace lamella::actors
