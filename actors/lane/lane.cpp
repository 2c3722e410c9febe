#include "actors/lane/lane.hpp"

#include "actors/lane/lane_hand_over.hpp"
#include "actors/lane/lane_launch.hpp"
#include "actors/lane/lane_prompts.hpp"
#include "actors/lane/lane_pump.hpp"
#include "actors/lane/lane_tokens.hpp"
#include "actors/lane/prompt_pulls.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/explain.hpp"

#include "base/failpoint.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

void on_sampled(lane_ptr self, uint64_t iteration, uint32_t attempt, sampled answer);
void on_failure(lane_ptr self, const iteration_failed& x);

/// Hands the iteration to the devices.
void start(lane_ptr self, const iteration_launch& x) {
  const auto stream = x.stream;
  const auto iteration = x.iteration;
  const auto attempt = x.attempt;
  launch(
      &*self, self->state.config.target, x,
      [=](sampled& answer) { on_sampled(self, iteration, attempt, std::move(answer)); },
      [=](caf::error& reason) {
        if (peer_lost(reason))
          self->quit(peer_gone());
        else if (reason == ec::link_cut)
          self->delayed_send(self, cut_timeout,
                             iteration_failed{stream, iteration, attempt, true, cut_reason});
        else
          on_failure(self, {stream, iteration, attempt, is_silence(reason),
                            explain(self->system(), reason)});
      });
}

/// False when there is nothing to run.
bool launch_iteration(lane_ptr self) {
  auto& st = self->state;
  lane_state::flight flight;
  // Prompts keep the number of their iteration: pulls wait for it.
  const bool same = !st.prompts.again.empty();
  flight.spans = next_spans(self);
  if (flight.spans.empty()) return false;
  const auto pieces = flight.pieces();
  if (!pieces.empty()) failpoint_or_throw(failpoint::prefill_chunk);
  flight.iteration = same ? st.iteration : ++st.iteration;
  flight.attempt = st.failures;
  flight.launched = self->clock().now();
  note_begun(self, pieces);
  const auto x = compose(self, flight);
  flight.rows = static_cast<uint32_t>(x.tokens.size());
  st.flights.push_back(std::move(flight));
  start(self, x);
  if (!same) begin_layered(self, st.flights.back());
  return true;
}

bool is_current(const lane_state& st, uint64_t iteration, uint32_t attempt) {
  return !st.flights.empty() && st.flights.front().iteration == iteration
         && st.flights.front().attempt == attempt;
}

void note_iteration(lane_ptr self, const lane_state::flight& flight) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto took = now - flight.launched;
  st.failures = 0;
  st.silence = false;
  learn(st, flight, took);
  st.tokens.pace.ran(now.time_since_epoch(), took);
  if (st.config.target.beats) st.config.target.beats->beat(now);
  if (const auto& metrics = st.config.target.metrics) {
    metrics->iteration(flight.rows, flight.spans.size());
    if (st.config.tokens) metrics->set_mailbox_depth("batch", self->mailbox().size());
  }
}

/// The records of the prompts; those of sequences that decode are committed.
std::vector<sampled_token> commit_tokens(lane_ptr self, const lane_state::flight& flight,
                                         std::vector<sampled_token> records) {
  std::vector<sampled_token> of_prompts;
  auto& st = self->state;
  size_t next = 0;
  for (const auto& span : flight.spans) {
    if (const auto* seat = std::get_if<uint32_t>(&span.what)) {
      commit(self, st.tokens.seats.at(*seat), std::move(records.at(next++)));
      continue;
    }
    const auto& piece = std::get<scheduler::prefill_piece>(span.what);
    const auto draws = st.prompts.jobs.at(piece.sequence).what.samplings.size();
    const auto count = scores_of(piece) + (piece.last ? draws : 0);
    for (size_t i = 0; i < count; ++i) of_prompts.push_back(std::move(records.at(next++)));
  }
  return of_prompts;
}

void on_sampled(lane_ptr self, uint64_t iteration, uint32_t attempt, sampled answer) {
  auto& st = self->state;
  if (!is_current(st, iteration, attempt)) { // given up before
    if (st.config.target.metrics) st.config.target.metrics->fenced(net::fence::attempt);
    return;
  }
  if (st.flights.front().has_tokens() && failpoint_hit(failpoint::batch_commit)) {
    on_failure(self, {st.config.target.stream, iteration, attempt, false, "failpoint"});
    return;
  }
  const auto flight = std::move(st.flights.front());
  st.flights.pop_front();
  note_iteration(self, flight);
  auto of_prompts = commit_tokens(self, flight, std::move(answer.tokens));
  const auto took = self->clock().now() - flight.launched;
  if (flight.has_prompts()) take_prompts(self, flight, std::move(of_prompts), took);
  pump(self);
}

/// Everything in flight is dropped and run again from the committed tokens.
void drop_flights(lane_state& st) {
  st.prompts.again = st.flights.front().pieces();
  st.flights.clear();
  for (auto& [number, s] : st.tokens.seats) s.exposed |= std::exchange(s.in_flight, 0) > 0;
}

void on_failure(lane_ptr self, const iteration_failed& x) {
  auto& st = self->state;
  if (x.attempt == attempt_of_pulls) return end_lane(self, caf::make_error(ec::link_cut));
  if (x.attempt == attempt_of_late_pull) return on_late_pull(self, x.iteration);
  const bool known = std::any_of(st.flights.begin(), st.flights.end(), [&](const auto& f) {
    return f.iteration == x.iteration && f.attempt == x.attempt;
  });
  if (!known) return;
  st.silence |= x.silent;
  if (auto end = end_of_attempts(x, st.failures + 1, st.silence))
    return end_lane(self, std::move(end)); // all go on in the next pipeline
  drop_flights(st);
  spdlog::warn("{} iteration failed stream={} iteration={} failures={} reason=\"{}\"", st.name,
               static_cast<uint32_t>(st.config.target.stream), x.iteration, st.failures + 1,
               x.reason);
  // Until an iteration succeeds each attempt must clear the streams of what failed ones left there.
  ++st.failures;
  pump(self);
}

/// Can the next iteration be launched before the newest one has answered? An attempt clears the
/// streams before it: the one that runs must not be cleared.
bool can_run_ahead(const lane_state& st) {
  return st.flights.size() == 1 && st.failures == 0 && rows_are_known(st)
         && !st.flights.front().has_prompts() && (!st.config.prompts || st.prompts.plan->empty());
}

void tell_in_flight(const lane_state& st) {
  const auto& metrics = st.config.target.metrics;
  if (metrics && st.config.tokens)
    metrics->set_in_flight(static_cast<uint32_t>(st.config.target.stream), !st.flights.empty());
}

void prepare(lane_ptr self) {
  auto& st = self->state;
  if (const auto& c = st.config.tokens) {
    st.tokens.pace = scheduler::decode_pace{c->rebuild_percent};
    st.tokens.gathering = scheduler::join_gathering{c->gathers};
  } else {
    st.name = "prefill_worker";
  }
  if (const auto& c = st.config.prompts) {
    st.prompts.plan.emplace(c->chunk_tokens, c->rebuild_percent, c->order);
    st.prompts.composer = scheduler::composer{c->bounds};
    if (c->own) {
      st.prompts.slots.emplace(c->own->slots);
      st.prompts.fences.resize(c->own->shards.size());
    }
  }
  tell_in_flight(st); // the one before it may have ended in an iteration
}

} // namespace

void end_lane(lane_ptr self, caf::error reason) {
  auto& st = self->state;
  st.cut = true;
  spdlog::error("{} aborted stream={} iteration={} failures={} reason=\"{}\"", st.name,
                static_cast<uint32_t>(st.config.target.stream), st.iteration, st.failures,
                explain(self->system(), reason));
  self->quit(std::move(reason));
}

void pump(lane_ptr self) {
  auto& st = self->state;
  if (st.cut) return;
  unseat(self);
  // While it hands over, an attempt that failed is run again first: what is left of it on a device
  // must not write later. And prompts on own KV that have begun are computed to their end.
  const bool own = st.config.prompts && st.config.prompts->own;
  const bool stops = st.handing && st.failures == 0 && !own;
  bool idle = st.flights.empty();
  if (idle && !stops) {
    seat_joined(self);
    if (!rests(self)) idle = !launch_iteration(self);
  }
  if (!stops && can_run_ahead(st)) launch_iteration(self);
  if (st.handing && idle && st.failures == 0) finish_hand_over(self);
  tell_load(self);
  tell_in_flight(st);
}

lane_actor::behavior_type lane(lane_ptr self, lane_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  prepare(self);
  return {
      [self](const batch_join& x) { on_join(self, x); },
      [self](const batch_leave& x) { on_leave(self, x); },
      [self](const iteration_failed& x) { on_failure(self, x); },
      [self](const kv_rebuilding& x) {
        self->state.tokens.pace.rebuilds(x.stream, x.some);
        pump(self);
      },
      [self](const hand_over& x) { return on_hand_over(self, x); },
      [self](wake_atom) {
        self->state.tokens.resting = false;
        pump(self);
      },
      [self](status_atom) -> caf::result<uint32_t> {
        const auto& part = self->state.tokens;
        return static_cast<uint32_t>(part.seats.size() + part.joining.size());
      },
      [self](const prefill& x) { return on_prefill(self, x); },
      [self](const prefill_cancel& x) { on_cancel(self, x); },
  };
}

} // namespace lamella::actors
