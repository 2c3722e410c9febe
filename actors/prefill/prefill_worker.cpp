#include "actors/prefill/prefill_worker.hpp"

#include "actors/prefill/prefill_launch.hpp"
#include "actors/prefill/prefill_pulls.hpp"
#include "actors/prefill/prefill_rebuilds.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/requests.hpp"
#include "base/failpoint.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using job = prefill_worker_state::job;

void pump(prefill_ptr self);

/// It computes no more: its seat is free from the next launch on.
void withdraw(prefill_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.jobs.at(first);
  st.plan->remove(first);
  if (j.seat) st.seats.leave(*j.seat);
  j.seat.reset();
  free_slots(st, j);
}

/// Puts a job where its turn is; `again`: it has had it and failed.
void enqueue(prefill_ptr self, sequence_id first, bool again) {
  auto& st = self->state;
  const auto& j = st.jobs.at(first);
  const auto tokens = static_cast<uint32_t>(j.what.tokens.size());
  if (j.what.rebuild)
    st.plan->add(scheduler::rebuild_entry{first, tokens, j.came, j.deadline, j.what.cached});
  else if (again)
    st.plan->add_first(first, tokens, j.what.cached, j.came, j.what.scored > 0);
  else
    st.plan->add(first, tokens, j.what.cached, j.came, j.what.scored > 0);
}

/// Ends this actor, and nothing begins any more.
void end(prefill_ptr self, caf::error reason) {
  self->state.cut = true;
  spdlog::error("prefill worker aborted stream={} reason=\"{}\"",
                static_cast<uint32_t>(self->state.config.target.stream),
                explain(self->system(), reason));
  self->quit(std::move(reason));
}

bool runs(const prefill_worker_state& st, sequence_id first) {
  return st.current
         && std::any_of(st.current->pieces.begin(), st.current->pieces.end(),
                        [&](const auto& p) { return p.sequence == first; });
}

/// Takes the job on where it stands, unless devices still work on it: a cancelled one is over, a
/// failed one runs again with the same tokens, one whose rows are where they belong is told.
void settle(prefill_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.jobs.at(first);
  if (runs(st, first)) return;
  const bool failed = j.failure || j.cancelled;
  if (failed) withdraw(self, first);
  if (j.pulls > 0 || (!failed && !j.result)) return;
  if (j.failure && !j.cancelled && ++j.failures < attempts_max) {
    spdlog::warn("prefill retried sequence={} failures={} reason=\"{}\"",
                 static_cast<uint64_t>(first), j.failures, explain(self->system(), j.failure));
    j.failure = caf::error{};
    j.result.reset();
    j.scores.clear();
    enqueue(self, first, true);
    return;
  }
  if (!j.cancelled && j.failure) {
    // The pipeline is made anew, and the request asks again. Where nobody has said that a device
    // failed, it is the links that are not to be trusted.
    const auto why = is_silence(j.failure)          ? ec::attempts_silent
                     : j.failure == ec::rows_differ ? ec::rows_differ
                                                    : ec::attempts_spent;
    end(self, caf::make_error(why, explain(self->system(), j.failure)));
    return;
  }
  auto node = st.jobs.extract(first);
  auto& over = node.mapped();
  if (over.what.rebuild) rebuild_ended(self, over);
  if (over.cancelled) {
    over.promise.deliver(caf::make_error(ec::cancelled));
    return;
  }
  tell_of_pulls(self, over.what, true);
  over.promise.deliver(std::move(*over.result));
}

void on_pulls_ended(prefill_ptr self, sequence_id first) {
  settle(self, first);
  pump(self);
}

/// Rows of the iteration's prompts that are pulled while it runs.
void begin_layered(prefill_ptr self) {
  auto& st = self->state;
  std::vector<prompt_rows> rows;
  for (const auto& x : st.current->pieces)
    if (st.jobs.at(x.sequence).mode == scheduler::pull_mode::layered)
      rows.push_back({x.sequence, x.position, x.tokens});
  begin_pulls(self, rows, st.current->launch.iteration, on_pulls_ended);
}

/// The prompts that are computed and were not pulled meanwhile.
void begin_serialized(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  std::vector<prompt_rows> rows;
  for (const auto& x : pieces)
    if (const auto& j = self->state.jobs.at(x.sequence);
        j.result && !j.cancelled && j.mode == scheduler::pull_mode::serialized)
      rows.push_back({x.sequence, 0, x.position + x.tokens});
  begin_pulls(self, rows, 0, on_pulls_ended);
}

/// Nobody waits for KV that is on its way before it has the first token (S-M13).
void tell_first_tokens(prefill_ptr self, const job& j) {
  if (!j.what.client || j.what.rebuild || j.pulls == 0) return;
  for (size_t k = 0; k < j.result->tokens.size(); ++k)
    self->send(j.what.client, first_token{sequence_id{static_cast<uint64_t>(j.what.first) + k},
                                          j.what.draws[k], j.result->tokens[k]});
}

/// What is left of the prompts that have begun, for whoever chooses where the next one goes.
void tell_load(prefill_ptr self) {
  auto& st = self->state;
  const auto left = st.plan->begun_tokens();
  if (std::exchange(st.told_left, left) != left && st.config.scheduler)
    self->send(st.config.scheduler, prefill_load{st.config.target.stream, left});
}

/// What of a prompt is computed outlives this worker: whoever takes the prompt over goes on there.
void note_filled(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  const auto& target = self->state.config.target;
  for (const auto& x : pieces)
    if (!x.last && target.allocator)
      self->send(target.allocator, kv_filled{x.sequence, target.epoch, x.position + x.tokens});
}

void on_sampled(prefill_ptr self, sampled answer) {
  auto& st = self->state;
  auto flight = std::move(*st.current);
  st.current.reset();
  st.failures = 0;
  st.silence = false;
  const auto now = self->clock().now();
  const auto work = scheduler::prefill_work(flight.pieces);
  if (st.deadline.empty()) st.config.target.firsts->add(work, now - flight.launched);
  st.deadline.add(work, now - flight.launched);
  st.pace.add(work, now - flight.launched);
  if (st.config.own) await_pulls(self, flight.launch.iteration);
  if (st.config.target.beats) st.config.target.beats->beat(now);
  announce_rebuild(st, flight.launch.tokens.size(), now - flight.launched);
  if (st.config.target.metrics)
    st.config.target.metrics->iteration(flight.launch.tokens.size(), flight.pieces.size());
  take_sampled_tokens(st, flight.pieces, std::move(answer));
  if (st.config.own)
    begin_serialized(self, flight.pieces);
  else
    note_filled(self, flight.pieces);
  for (const auto& piece : flight.pieces) {
    if (piece.last) tell_first_tokens(self, st.jobs.at(piece.sequence));
    if (piece.last) withdraw(self, piece.sequence);
    settle(self, piece.sequence);
  }
  pump(self);
}

void start(prefill_ptr self) {
  failpoint_or_throw(failpoint::prefill_chunk);
  auto& st = self->state;
  const auto iteration = st.current->launch.iteration;
  const auto attempt = st.current->launch.attempt;
  const auto is_current = [self, iteration, attempt] {
    const auto& current = self->state.current;
    return current && current->launch.iteration == iteration && current->launch.attempt == attempt;
  };
  launch(
      &*self, st.config.target, st.current->launch,
      [=](sampled& answer) {
        if (is_current())
          on_sampled(self, std::move(answer));
        else if (self->state.config.target.metrics)
          self->state.config.target.metrics->fenced(net::fence::attempt);
      },
      [=](caf::error& reason) {
        if (peer_lost(reason))
          self->quit(peer_gone());
        else if (reason == ec::link_cut)
          self->delayed_send(self, cut_timeout,
                             iteration_failed{self->state.config.target.stream, iteration, attempt,
                                              true, cut_reason});
        else if (is_current())
          self->send(self, iteration_failed{self->state.config.target.stream, iteration, attempt,
                                            is_silence(reason), explain(self->system(), reason)});
      });
}

void on_failure(prefill_ptr self, const iteration_failed& x) {
  auto& st = self->state;
  if (x.attempt == attempt_of_pulls) {
    end(self, caf::make_error(ec::link_cut));
    return;
  }
  if (x.attempt == attempt_of_late_pull) {
    on_late_pull(self, x.iteration);
    return;
  }
  if (!st.current || st.current->launch.iteration != x.iteration
      || st.current->launch.attempt != x.attempt)
    return;
  st.silence |= x.silent;
  if (auto reason = end_of_attempts(x, st.failures + 1, st.silence)) {
    end(self, std::move(reason));
    return;
  }
  spdlog::warn("prefill iteration failed iteration={} attempt={} reason=\"{}\"", x.iteration,
               x.attempt, x.reason);
  st.current->launch.attempt = ++st.failures;
  st.current->launch.timeout_ms = timeout_ms(st, st.current->pieces);
  st.current->launched = self->clock().now();
  st.current->launch.changes.clear(); // they were applied with the first attempt
  start(self);
}

/// Gives a prompt slots of our own, all at once.
bool take_slots(prefill_worker_state& st, sequence_id first, uint32_t tokens) {
  auto taken = st.slots->take(tokens);
  if (taken) st.jobs.at(first).slots = std::move(*taken);
  return taken.has_value();
}

/// What it has computed is in the pool, and nothing runs.
void finish_hand_over(prefill_ptr self) {
  auto& st = self->state;
  if (!st.handed || !st.pulls.empty()) return;
  st.handed->deliver(true);
  st.handed.reset();
}

/// While it hands over, a prompt on its own KV is computed to its end, because nobody could go on
/// with that KV; any other one stops after the chunk that runs.
std::vector<scheduler::prefill_piece> next_pieces(prefill_ptr self) {
  auto& st = self->state;
  if (st.handing && !st.config.own) return {};
  return st.plan->next(limits(self), [&](sequence_id first, uint32_t tokens) {
    return !st.handing && (!st.config.own || take_slots(st, first, tokens));
  });
}

void pump(prefill_ptr self) {
  auto& st = self->state;
  if (st.current || st.cut) return;
  const auto now = self->clock().now();
  auto pieces = next_pieces(self);
  tell_load(self);
  if (pieces.empty()) return finish_hand_over(self);
  if (!st.config.own)
    std::stable_sort(pieces.begin(), pieces.end(), [&](const auto& a, const auto& b) {
      return st.jobs.at(a.sequence).what.member < st.jobs.at(b.sequence).what.member;
    });
  note_begun(self, pieces);
  auto x = compose(self, pieces);
  st.current.emplace(prefill_worker_state::flight{std::move(x), now, std::move(pieces)});
  start(self);
  if (st.config.own) begin_layered(self);
}

caf::result<prefilled> on_prefill(prefill_ptr self, const prefill& x) {
  auto& st = self->state;
  if (x.tokens.empty() || x.samplings.empty() || x.draws.size() != x.samplings.size()
      || x.changes.size() != x.samplings.size() || x.cached >= x.tokens.size()
      || (x.cached > 0 && (st.config.own || x.scored > 0)) || (x.scored > 0 && x.rebuild)
      || st.jobs.contains(x.first))
    return caf::make_error(caf::sec::invalid_argument, "malformed prefill");
  const auto tokens = static_cast<uint32_t>(x.tokens.size());
  if (st.slots && tokens > st.slots->slots())
    return caf::make_error(ec::never_fits, std::to_string(tokens)
                                               + " tokens, but a prefill worker has "
                                               + std::to_string(st.slots->slots()) + " slots");
  auto promise = self->make_response_promise<prefilled>();
  auto& j = st.jobs[x.first];
  j.what = x;
  j.promise = promise;
  j.asked = self->clock().now();
  j.came = j.asked.time_since_epoch();
  if (st.config.own) j.mode = scheduler::pull_mode_of(tokens, st.config.own->serialize_below);
  if (x.rebuild) rebuild_began(self, j);
  tell_of_pulls(self, x, false);
  enqueue(self, x.first, false);
  pump(self);
  return promise;
}

void on_cancel(prefill_ptr self, sequence_id first) {
  auto& st = self->state;
  auto found = st.jobs.find(first);
  if (found == st.jobs.end()) return;
  found->second.cancelled = true;
  settle(self, first);
  pump(self);
}

/// Its prompts' positions are told with each chunk.
caf::result<bool> on_hand_over(prefill_ptr self, const hand_over& x) {
  auto& st = self->state;
  if (!x.stop) return true;
  st.handing = true;
  st.handed = self->make_response_promise<bool>();
  auto promise = *st.handed;
  pump(self);
  return promise;
}

} // namespace

prefill_worker_actor::behavior_type prefill_worker(prefill_ptr self, prefill_worker_config config) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config = std::move(config);
  st.plan.emplace(st.config.chunk_tokens, st.config.rebuild_percent, st.config.order);
  if (st.config.own) {
    st.slots.emplace(st.config.own->slots);
    st.fences.resize(st.config.own->shards.size());
  }
  return {
      [self](const prefill& x) { return on_prefill(self, x); },
      [self](const prefill_cancel& x) { on_cancel(self, x.first); },
      [self](const hand_over& x) { return on_hand_over(self, x); },
      [self](const iteration_failed& x) { on_failure(self, x); },
  };
}

} // namespace lamella::actors
