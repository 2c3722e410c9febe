#include "actors/lane/lane.hpp"

#include "actors/lane/lane_hand_over.hpp"
#include "actors/lane/lane_iterations.hpp"
#include "actors/lane/lane_prompts.hpp"
#include "actors/lane/lane_pump.hpp"
#include "actors/lane/lane_tokens.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// Can the next iteration be launched before the newest one has answered (decision 20)?
bool can_run_ahead(const lane_state& st) {
  return st.in_step == 0 && st.line.may_run_ahead() && st.tokens.batch.rows_are_known()
         && (!st.config.prompts || st.prompts.plan->empty());
}

void tell_in_flight(const lane_state& st) {
  const auto& metrics = st.config.target.metrics;
  if (metrics && st.config.tokens)
    metrics->set_in_flight(static_cast<uint32_t>(st.config.target.stream), !st.line.idle());
}

void prepare(lane_ptr self) {
  auto& st = self->state;
  if (const auto& c = st.config.tokens) {
    st.tokens.batch = scheduler::decode_batch{c->batch};
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
                static_cast<uint32_t>(st.config.target.stream), st.line.iteration(),
                st.line.failures(), explain(self->system(), reason));
  self->quit(std::move(reason));
}

void pump(lane_ptr self) {
  auto& st = self->state;
  if (st.cut) return;
  unseat(self);
  // While it hands over, an attempt that failed is run again first: what is left of it on a device
  // must not write later. Prompts on own KV that have begun go on until stop_own_prompts() ends
  // them.
  const bool own = st.config.prompts && st.config.prompts->own;
  const bool stops = st.handing && st.line.failures() == 0 && !own;
  stop_own_prompts(self);
  bool idle = st.line.idle();
  if (idle && !stops) {
    seat_joined(self);
    if (!rests(self)) idle = !launch_iteration(self);
  }
  if (!stops && can_run_ahead(st)) launch_iteration(self);
  if (st.handing && idle && st.line.failures() == 0) finish_hand_over(self);
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
        self->state.tokens.batch.rebuilds(x.stream, x.some);
        pump(self);
      },
      [self](const hand_over& x) { return on_hand_over(self, x); },
      [self](wake_atom) {
        self->state.tokens.wakes_at = {};
        pump(self);
      },
      [self](status_atom) -> caf::result<uint32_t> {
        return static_cast<uint32_t>(self->state.tokens.batch.size());
      },
      [self](const prefill& x) { return on_prefill(self, x); },
      [self](const prefill_cancel& x) { on_cancel(self, x); },
  };
}

} // namespace lamella::actors
