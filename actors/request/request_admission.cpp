#include "actors/request/request_admission.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/request/divergence.hpp"
#include "actors/request/request_times.hpp"
#include "actors/shared/explain.hpp"

#include <algorithm>
#include <limits>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;
using seconds = std::chrono::duration<double>;

/// The requester's own timeout is the deadline; questions only outlive it a little.
caf::timespan timeout(request_ptr self) { return self->state.deadline + std::chrono::seconds{30}; }

/// Milliseconds to the deadline.
uint32_t slack_of(request_ptr self) {
  using std::chrono::milliseconds;
  const auto& st = self->state;
  const auto rest = st.arrived + st.deadline - self->clock().now();
  return static_cast<uint32_t>(
      std::clamp<int64_t>(std::chrono::duration_cast<milliseconds>(rest).count(), 0,
                          std::numeric_limits<uint32_t>::max()));
}

/// An error between actors in the words of the API.
net::api_error api_error_of(const caf::error& reason, caf::actor_system& system) {
  if (reason == ec::queue_full || reason == ec::queue_tokens) return net::queue_full(1000);
  if (reason == ec::draining) return net::draining();
  if (reason == ec::mask_refused) return net::bad_request(explain(system, reason));
  if (reason == ec::never_fits) return net::never_fits(explain(system, reason));
  if (reason == ec::device_lost || reason == ec::deadline)
    return net::recovery_failed(explain(system, reason));
  return net::internal_error(explain(system, reason));
}

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
  out.constraint = st.constraint;
  if (st.params.logprobs)
    out.logprobs = *st.params.logprobs + 1;
  else if (st.choices > st.params.n)
    out.logprobs = 1; // to pick the best
  out.bias.assign(p.logit_bias.begin(), p.logit_bias.end());
  if (!st.params.ignore_eos) out.end_tokens = st.server->end_tokens;
  if (!st.tools.active()) // beside calls the choice tells where they end the answer
    out.end_tokens.insert(out.end_tokens.end(), st.params.stop_token_ids.begin(),
                          st.params.stop_token_ids.end());
  return out;
}

/// Prompt and what was generated: all that a prefill needs, the first time and after a preemption.
/// After a loss without the newest one, which is then drawn again: it shows whether the KV is what
/// it was (reliability A4).
std::vector<token_id> tokens_of(const request_state& st, size_t index, size_t without = 0) {
  auto tokens = st.prompts[index / st.choices];
  const auto& generated = st.sequences[index].text->tokens();
  tokens.insert(tokens.end(), generated.begin(), generated.end() - static_cast<ptrdiff_t>(without));
  return tokens;
}

/// Its KV was lost after it had answered: the newest token is drawn again.
bool rebuilds(const request_sequence& s) {
  return s.recovery != nullptr && !s.text->tokens().empty();
}

/// Of the logits before the draw that follows all but the newest `without` tokens, but for the
/// mask.
logit_changes changes_of(const request_state& st, size_t index, const sampling& wanted,
                         size_t without) {
  if (!wanted.needs_history() && wanted.bias.empty()) return {};
  model::token_history history;
  history.prompt(st.prompts[index / st.choices]);
  const auto& generated = st.sequences[index].text->tokens();
  for (size_t i = 0; i + without < generated.size(); ++i) history.generated(generated[i]);
  return {history.edits(wanted), nullptr};
}

/// Whoever looks for what ends workers must know who runs where.
void runs_on(const request_state& st, size_t index, stream_id where) {
  if (const auto& suspects = st.server->suspects)
    suspects->runs(st.sequence(index), st.server->epoch, where,
                   static_cast<uint32_t>(st.sequences[index].text->tokens().size()));
}

void join(request_ptr self, size_t index, const admitted& place, const kv_holding& holding,
          const sampling& wanted) {
  auto& st = self->state;
  auto& s = st.sequences[index];
  s.where = phase::decoding;
  s.has_kv = true;
  s.batch = place.batch;
  runs_on(st, index, place.batch);
  batch_join x;
  x.sequence = st.sequence(index);
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

/// Once they are there they are never asked for again, whatever is lost.
void keep_scores(request_state& st, size_t first, prefilled& x) {
  if (x.scores.empty() && st.prompts[first / st.choices].size() > 1) return;
  if (!st.unscored(first)) return;
  st.scores[first / st.choices] = std::make_shared<const prompt_scores>(
      prompt_scores{st.prompts[first / st.choices].front(), std::move(x.scores)});
}

/// The first tokens of a prompt's choices are there, or the next one of a resumed choice. What is
/// committed is compared: the newest token after a loss, and first tokens that came before their KV
/// (S-M13).
void on_prefilled(request_ptr self, size_t first, const admitted& place,
                  const std::vector<sampling>& wanted, const std::vector<uint32_t>& draws,
                  prefilled& x) {
  auto& st = self->state;
  const auto is_finite = [](const auto& drawn) { return drawn.finite; };
  const bool finite = std::all_of(x.tokens.begin(), x.tokens.end(), is_finite)
                      && std::all_of(x.scores.begin(), x.scores.end(), is_finite);
  keep_scores(st, first, x);
  const auto filled = static_cast<uint32_t>(st.prompts[first / st.choices].size()) + draws[0];
  if (!finite)
    self->send(st.server->allocator, kv_doubt{st.sequence(first), st.server->epoch});
  else
    self->send(st.server->allocator, kv_filled{st.sequence(first), st.server->epoch, filled});
  for (size_t k = 0; k < x.tokens.size(); ++k) {
    const auto index = first + k;
    auto& s = st.sequences[index];
    const auto& drawn = x.tokens[k];
    if (st.answered || !finite) {
      give_back(self, index);
      if (!st.answered) fail(self, net::internal_error("the model's logits are not finite"));
      continue;
    }
    if (st.max_tokens == 0) { // the prompt alone was wanted
      goes_on(st, s, self->clock().now());
      s.text->close(finish::length);
      give_back(self, index);
      continue;
    }
    if (s.text->tokens().size() > draws[k])
      compare_with_committed(self, index, draws[k], drawn.token, "prefill");
    else
      accept_token(self, index, drawn, reason_of_first(st, index, drawn));
    if (s.text->over())
      give_back(self, index);
    else
      join(self, index, place, place.holdings[k], wanted[k]);
  }
  speak_and_finish(self);
}

/// Has the tokens of `x` computed; all choices draw their next one under the same mask.
void send_prefill(request_ptr self, size_t first, const admitted& place, prefill x,
                  const std::shared_ptr<const model::token_mask>& mask) {
  auto& st = self->state;
  const auto choices = static_cast<uint32_t>(x.samplings.size());
  for (auto& changes : x.changes) changes.mask = mask;
  ++st.open_questions;
  auto wanted = x.samplings;
  auto draws = x.draws;
  const auto asked = self->clock().now();
  const auto epoch = st.server->epoch;
  self->request(st.server->prefill_workers.at(place.prefill_worker), timeout(self), std::move(x))
      .then(
          [=](prefilled& answer) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            note_start(self->state, asked + std::chrono::microseconds{answer.waited_us});
            or_fail(self, [&] { on_prefilled(self, first, place, wanted, draws, answer); });
            for (uint32_t k = 0; k < choices; ++k) // whose turn an error took
              if (self->state.sequences[first + k].where == phase::prefilling)
                give_back(self, first + k);
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

/// Where it is not known yet what may come next, it is found out beside the requests.
void ask_prefill(request_ptr self, size_t first, const admitted& place, prefill x,
                 model::constrained_answer answer) {
  auto& st = self->state;
  if (!st.server->masks) answer.make_mask();
  if (answer.knows_mask()) return send_prefill(self, first, place, std::move(x), answer.mask());
  ++st.open_questions;
  const auto choices = static_cast<uint32_t>(x.samplings.size());
  const auto epoch = st.server->epoch;
  const auto give_all_back = [=] {
    for (uint32_t k = 0; k < choices; ++k) give_back(self, first + k);
  };
  self->request(st.server->masks, mask_timeout, std::move(answer))
      .then(
          [=, x = std::move(x)](const model::constrained_answer& known) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            if (self->state.answered) // cancelled meanwhile
              give_all_back();
            else
              send_prefill(self, first, place, x, known.mask());
            quit_if_idle(self);
          },
          [=](caf::error& reason) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            if (peer_lost(reason)) return quit_if_idle(self);
            give_all_back();
            fail(self, api_error_of(reason, self->system()));
            quit_if_idle(self);
          });
}

void on_admitted(request_ptr self, size_t first, uint32_t choices, const admitted& place) {
  auto& st = self->state;
  if (st.answered) { // cancelled while the answer was under way
    for (uint32_t k = 0; k < choices; ++k) give_back(self, first + k);
    return;
  }
  note_admitted(st, self->clock().now());
  for (uint32_t k = 0; k < choices; ++k) {
    auto& s = st.sequences[first + k];
    if (s.recovery == nullptr) continue;
    s.recovery = place.holdings.front().kept ? (st.server->by_parity ? "parity" : "replica")
                 : s.text->tokens().empty()  ? "replay"
                                             : "recompute";
    st.server->metrics->request_recovered(s.recovery);
  }
  if (place.holdings.front().kept) { // nothing is computed again
    join(self, first, place, place.holdings.front(), sampling_of(st, first));
    return;
  }
  for (uint32_t k = 0; k < choices; ++k) st.sequences[first + k].has_kv = false;
  prefill x;
  x.rebuild = rebuilds(st.sequences[first]);
  if (x.rebuild) x.slack_ms = slack_of(self);
  x.first = st.sequence(first);
  x.tokens = tokens_of(st, first, x.rebuild ? 1 : 0);
  x.member = place.holdings.front().member;
  x.runs = place.holdings.front().runs;
  x.cached = place.holdings.front().cached;
  x.client = caf::actor_cast<decode_client_actor>(self);
  if (st.unscored(first)) x.scored = st.scored;
  for (uint32_t k = 0; k < choices; ++k) {
    const auto index = first + k;
    st.sequences[index].where = phase::prefilling;
    if (st.sequences[index].text->tokens().empty()) st.sequences[index].cached = x.cached;
    runs_on(st, index, st.server->prompt_stream(place.prefill_worker));
    x.samplings.push_back(sampling_of(st, index));
    x.draws.push_back(
        static_cast<uint32_t>(st.sequences[index].text->tokens().size() - (x.rebuild ? 1 : 0)));
    x.changes.push_back(changes_of(st, index, x.samplings.back(), x.rebuild ? 1 : 0));
  }
  const auto& generated = st.sequences[first].text->tokens();
  model::constrained_answer answer{st.constraint};
  answer.generated(std::span{generated}.first(generated.size() - (x.rebuild ? 1 : 0)));
  ask_prefill(self, first, place, std::move(x), std::move(answer));
}

} // namespace

finish reason_of_first(const request_state& st, size_t index, const sampled_token& drawn) {
  const auto ends = sampling_of(st, index).end_tokens;
  if (std::find(ends.begin(), ends.end(), drawn.token) != ends.end()) return finish::stop;
  const auto generated = st.sequences[index].text->tokens().size() + 1;
  return generated >= st.max_tokens ? finish::length : finish::none;
}

void accept_token(request_ptr self, size_t index, const sampled_token& drawn, finish reason) {
  auto& st = self->state;
  auto& s = st.sequences[index];
  if (s.text->over()) return;
  const auto now = self->clock().now();
  if (!st.has_first_token) {
    st.has_first_token = true;
    st.first_token = now;
    st.server->metrics->first_token(seconds{now - st.arrived}.count());
    if (st.server->load) st.server->load->first_token(now, now - st.arrived);
  } else if (!s.text->tokens().empty()) {
    st.gaps += now - s.last_token;
    ++st.gap_count;
    st.server->metrics->token_gap(seconds{now - s.last_token}.count());
    if (st.server->load) st.server->load->token_gap(now, now - s.last_token);
    if (s.recovery != nullptr)
      st.server->metrics->recovery_pause(s.lost_role, s.recovery,
                                         seconds{now - s.last_token}.count());
  }
  goes_on(st, s, now);
  s.last_token = now;
  st.server->metrics->tokens_generated(1);
  if (st.server->load) st.server->load->tokens(now, 1);
  s.text->push(drawn, reason);
  // Where it was the last one, nobody waits for what was lost any more.
  if (s.text->over() && st.server->pauses && !st.paused()) st.server->pauses->goes_on(st.id);
  if (s.heard)
    compare_with_committed(self, index, static_cast<uint32_t>(s.text->tokens().size()) - 1,
                           *std::exchange(s.heard, std::nullopt), "the previous batch");
  if (const auto& suspects = st.server->suspects; suspects && s.text->over())
    suspects->stopped(st.sequence(index), suspect_board::pause::done);
  else if (suspects)
    suspects->has(st.sequence(index), static_cast<uint32_t>(s.text->tokens().size()));
}

void ask_admission(request_ptr self, size_t first, uint32_t choices, bool resumed) {
  auto& st = self->state;
  for (uint32_t k = 0; k < choices; ++k) st.sequences[first + k].where = phase::waiting;
  const auto tokens = static_cast<uint32_t>(tokens_of(st, first).size());
  kv_text text;
  if (st.server->caches_prefixes)
    text = {st.cache_scope, tokens_of(st, first, rebuilds(st.sequences[first]) ? 1 : 0),
            st.unscored(first), resumed && st.server->lost_role.empty()};
  ++st.open_questions;
  const auto epoch = st.server->epoch;
  self->request(st.server->scheduler, timeout(self),
                admit{st.sequence(first), choices, tokens, resumed,
                      choices == 1 && st.sequences[first].has_kv, std::move(text)})
      .then(
          [=](const admitted& place) {
            if (self->state.server->epoch != epoch) return;
            --self->state.open_questions;
            if (!or_fail(self, [&] { on_admitted(self, first, choices, place); }))
              for (uint32_t k = 0; k < choices; ++k) give_back(self, first + k);
            quit_if_idle(self);
          },
          [=](caf::error& reason) {
            auto& state = self->state;
            if (state.server->epoch != epoch) return;
            --state.open_questions;
            if (peer_lost(reason)) return quit_if_idle(self);
            for (uint32_t k = 0; k < choices; ++k) {
              auto& s = state.sequences[first + k];
              s.where = phase::done;
              // Nobody wants its KV now; a prompt that never ended may have left some.
              if (std::exchange(s.has_kv, false) || reason == ec::request_poisoned)
                give_back(self, first + k);
            }
            const bool full = reason == ec::queue_full || reason == ec::queue_tokens;
            if (full && !state.answered)
              state.server->metrics->admission_rejected(reason == ec::queue_full
                                                            ? net::rejection::queue_requests
                                                            : net::rejection::queue_tokens);
            if (reason == ec::draining && !state.answered)
              state.server->metrics->admission_rejected(net::rejection::draining);
            if (reason == ec::request_poisoned)
              fail_poisoned(self);
            else
              fail(self, api_error_of(reason, self->system()), net::request_outcome::rejected);
            quit_if_idle(self);
          });
}

} // namespace lamella::actors
