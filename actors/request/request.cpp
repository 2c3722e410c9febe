#include "actors/request/request.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/request/answer.hpp"
#include "actors/request/divergence.hpp"
#include "actors/request/request_admission.hpp"
#include "actors/request/request_body.hpp"
#include "actors/request/request_end.hpp"
#include "actors/request/request_report.hpp"
#include "actors/request/request_times.hpp"
#include "actors/request/request_trace.hpp"
#include "actors/shared/exceptions.hpp"
#include "base/failpoint.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using phase = request_sequence::phase;

/// A sequence yields its place after its client has read nothing for this long.
constexpr std::chrono::seconds yield_after{5};

/// The longest time between two looks at the deadline, and at how its client reads.
constexpr caf::timespan look_interval{std::chrono::seconds{1}};

/// How long a request waits for its admission before a stream is opened for it.
constexpr std::chrono::milliseconds open_after{250};

/// Looks again every second: a timer cannot be taken back, and one that runs to the deadline
/// would keep what is left of each finished request for as long.
void watch_deadline(request_ptr self) {
  const auto& st = self->state;
  const auto rest = st.arrived + st.deadline - self->clock().now();
  self->delayed_send(self, std::clamp<caf::timespan>(rest, caf::timespan{0}, look_interval),
                     expire_atom_v);
}

void on_begin(request_ptr self, begin_atom) {
  watch_deadline(self);
  begin_reading(self);
}

/// Whether all that is asked for are no tokens, of a prompt whose computation nobody could use.
bool asks_nothing(const request_state& st) {
  const bool warms = st.route == net::api_route::messages && st.server->caches_prefixes;
  return st.max_tokens == 0 && st.scored == 0 && !warms;
}

/// A request that was cancelled or expired while its body was read asks for no admission.
void on_reading(request_ptr self, const request_reading_ptr& x) {
  auto& st = self->state;
  if (st.answered) return;
  if (x->refusal) return fail(self, *x->refusal);
  prepare(st, std::move(*x));
  if (asks_nothing(st)) {
    for (auto& s : st.sequences) {
      s.text->close(finish::length);
      s.where = phase::done;
    }
    speak_and_finish(self);
    return;
  }
  if (st.params.stream) self->delayed_send(self, open_after, caf::tick_atom_v);
  for (size_t p = 0; p < st.prompts.size(); ++p)
    ask_admission(self, p * st.choices, st.choices, false);
}

void on_cancel(request_ptr self, cancel_atom) {
  auto& st = self->state;
  st.writing = false;
  st.unsent.clear();
  if (!st.answered) {
    st.answered = true;
    if (st.server->pauses) st.server->pauses->goes_on(st.id);
    report(self, net::request_outcome::cancelled, 499, {});
    stop_work(self);
  }
  quit_if_idle(self);
}

void on_token(request_ptr self, const token& x) {
  failpoint_or_throw(failpoint::request_token);
  auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (st.answered || index >= st.sequences.size()) return;
  auto& s = st.sequences[index];
  const auto next = s.text->tokens().size();
  // A position is committed once; a repeated one is the same token again (reliability A4).
  if (x.index < next) compare_with_committed(self, index, x.index, x.value.token, "batch");
  if (x.index != next) return st.server->metrics->fenced(net::fence::position);
  // A batch that ended may have spoken a last time; what it said is computed again. Nothing of this
  // epoch has the KV of that token.
  if (s.where != phase::decoding || x.epoch != st.server->epoch) {
    s.heard = x.value.token;
    return st.server->metrics->fenced(net::fence::epoch);
  }
  accept_token(self, index, x.value, x.reason);
  if (s.text->over()) {
    s.where = phase::done;
    if (x.reason == finish::none) // a stop string: the batch does not know yet
      leave_batch(self, index);
  }
  speak_and_finish(self);
}

/// A request that ends before its first token knows, too, how long it was in queues.
void on_prefill_begun(request_ptr self, const prefill_begun&) {
  note_start(self->state, self->clock().now());
}

/// The KV of its prompt is still on its way: it decodes when that has come (S-M13).
void on_first_token(request_ptr self, const first_token& x) {
  auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (st.answered || index >= st.sequences.size() || !x.value.finite) return;
  const auto& s = st.sequences[index];
  // What is said of the prompt comes first; and where nothing is to be generated, it says all.
  if (st.unscored(index - index % st.choices) || st.max_tokens == 0) return;
  // Of a prompt that was computed once more, it is known.
  if (s.where != phase::prefilling || x.index != s.text->tokens().size()) return;
  accept_token(self, index, x.value, reason_of_first(st, index, x.value));
  speak_and_finish(self);
}

void on_sequence_failed(request_ptr self, const sequence_failed& x) {
  const auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (x.epoch == st.server->epoch && index < st.sequences.size()
      && st.sequences[index].where == phase::decoding)
    fail(self, x.refused ? net::bad_request(x.reason) : net::internal_error(x.reason));
}

void on_preempted(request_ptr self, const preempted& x) {
  auto& st = self->state;
  const auto index = scheduler::index_of(x.sequence);
  if (st.answered || x.epoch != st.server->epoch || index >= st.sequences.size()
      || st.sequences[index].where != phase::decoding)
    return;
  if (const auto& suspects = st.server->suspects)
    suspects->stopped(x.sequence, st.stalled && x.kept ? suspect_board::pause::reader
                                                       : suspect_board::pause::brief);
  st.sequences[index].has_kv = x.kept;
  st.sequences[index].yields = false;
  if (st.stalled) {
    st.sequences[index].where = phase::waiting;
    st.sequences[index].yielded = true;
    // It waits for its reader from now on, and for nothing that was lost.
    st.sequences[index].paused_since.reset();
    if (st.server->pauses && !st.paused()) st.server->pauses->goes_on(st.id);
    return;
  }
  ask_admission(self, index, 1, true);
}

/// Gives up the seats of a reader that does not read, also of those that come to decode later; its
/// tokens and slots are kept.
void yield_seats(request_ptr self) {
  auto& st = self->state;
  const auto silence = self->clock().now() - st.last_written;
  if (st.answered || !st.writing || silence < yield_after) return;
  st.stalled = true;
  for (size_t i = 0; i < st.sequences.size(); ++i)
    if (auto& x = st.sequences[i]; x.where == phase::decoding && !std::exchange(x.yields, true))
      leave_batch(self, i, true);
}

void on_written(request_ptr self, written_atom) {
  auto& st = self->state;
  st.writing = st.stalled = false;
  speak_and_finish(self);
  if (!st.answered)
    for (size_t i = 0; i < st.sequences.size(); ++i)
      if (std::exchange(st.sequences[i].yielded, false)) ask_admission(self, i, 1, true);
  quit_if_idle(self);
}

void on_tick(request_ptr self, caf::tick_atom) {
  ping(self);
  const auto& st = self->state;
  if (!st.answered && st.server->ping.count() > 0)
    self->delayed_send(self, std::max<caf::timespan>(st.server->ping / 4, open_after),
                       caf::tick_atom_v);
}

void on_expire(request_ptr self, expire_atom) {
  const auto& st = self->state;
  if (st.answered) return;
  if (self->clock().now() - st.arrived < st.deadline) {
    yield_seats(self);
    return watch_deadline(self);
  }
  const auto limit = std::to_string(st.deadline.count()) + " ms";
  if (st.paused()) {
    st.server->metrics->request_lost(st.server->pauses ? st.server->pauses->role() : "model");
    fail(self,
         net::recovery_failed("the workers of the request were lost and did not come back within "
                              "the request's "
                              + limit + ": retry it"));
  } else if (st.down) {
    fail(self, net::no_capacity("no worker was available for the request within its " + limit
                                + ": retry later"));
  } else {
    fail(self, net::deadline_exceeded("the request did not finish within " + limit),
         net::request_outcome::error);
  }
}

/// What has begun pauses from now on; the next service says how it goes on.
void on_lost(request_ptr self, lost_atom) {
  auto& st = self->state;
  const auto now = self->clock().now();
  st.down = true;
  if (st.answered) return quit_if_idle(self);
  for (auto& s : st.sequences)
    if ((s.where == phase::prefilling || s.where == phase::decoding) && !s.text->over()
        && !s.paused_since)
      s.paused_since = now;
  if (st.server->pauses && st.paused())
    st.server->pauses->pauses(st.id, now, std::ranges::any_of(st.sequences, [](const auto& s) {
                                return s.paused_since && !s.text->tokens().empty();
                              }));
}

void on_drain(request_ptr self, drain_atom) { fail(self, net::draining()); }

/// The pipeline was rebuilt: what ran on the old one goes on, from the tokens it has; with the KV
/// it has, if no shard lost it. Questions to the old one are never answered.
void on_service(request_ptr self, const service_ptr& server) {
  auto& st = self->state;
  if (server->epoch <= st.server->epoch) return;
  st.server = server;
  st.down = st.stalled = false; // a reader that still takes nothing is seen at the next look
  st.open_questions = 0;
  if (st.answered) {
    quit_if_idle(self);
    return;
  }
  // An answer that was under way may have given empty slots in place of lost ones: what is held now
  // need not be the KV it had.
  for (auto& s : st.sequences) {
    s.yields = false;
    if (s.where == phase::waiting && !s.yielded) s.has_kv = false;
  }
  for (size_t first = 0; first < st.sequences.size(); first += st.choices) {
    const auto begin = st.sequences.begin() + static_cast<ptrdiff_t>(first);
    if (std::all_of(begin, begin + st.choices, [](const auto& s) { return s.text->over(); }))
      continue; // also a prompt that was scored and nothing else
    if (!server->lost_role.empty())
      for (auto s = begin; s != begin + st.choices; ++s)
        if (s->where == phase::prefilling || s->where == phase::decoding) {
          s->recovery = "replay";
          s->lost_role = server->lost_role; // the service forgets it with the next planned epoch
        }
    const bool prefilled_before = std::any_of(
        begin, begin + st.choices, [](const auto& s) { return !s.text->tokens().empty(); });
    if (!prefilled_before) {
      ask_admission(self, first, st.choices, true);
      continue;
    }
    for (size_t i = first; i < first + st.choices; ++i)
      if (!st.sequences[i].text->over() && !st.sequences[i].yielded)
        ask_admission(self, i, 1, true);
  }
}

/// A handler of one message, as a step of the request.
template <class Message> auto handled_by(request_ptr self, void (*handle)(request_ptr, Message)) {
  return [self, handle](Message x) { or_fail(self, [&] { handle(self, x); }); };
}

} // namespace

request_actor::behavior_type request(request_ptr self, service_ptr server, exchange_ptr exchange,
                                     request_id id, net::api_route route, uint64_t caller,
                                     request_note_ptr note) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.server = std::move(server);
  st.exchange = std::move(exchange);
  st.id = id;
  st.route = route;
  st.cache_scope = caller;
  st.note = std::move(note);
  st.arrived = st.last_written = self->clock().now();
  st.deadline = st.server->rules.deadline;
  begin_trace(st);
  if (st.server->suspects)
    self->attach_functor([suspects = st.server->suspects, id] { suspects->over(id); });
  if (st.server->pauses)
    self->attach_functor([watch = st.server->pauses, id] { watch->goes_on(id); });
  st.exchange->on_closed(
      [me = caf::actor_cast<request_actor>(self)] { caf::anon_send(me, cancel_atom_v); });
  return {
      handled_by(self, on_begin),
      handled_by(self, on_reading),
      handled_by(self, on_cancel),
      handled_by(self, on_written),
      handled_by(self, on_tick),
      handled_by(self, on_expire),
      handled_by(self, on_drain),
      handled_by(self, on_lost),
      handled_by(self, on_token),
      handled_by(self, on_first_token),
      handled_by(self, on_preempted),
      handled_by(self, on_service),
      handled_by(self, on_sequence_failed),
      handled_by(self, on_prefill_begun),
  };
}

} // namespace lamella::actors
