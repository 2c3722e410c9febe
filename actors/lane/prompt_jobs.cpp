#include "actors/lane/prompt_jobs.hpp"

#include "actors/lane/lane_pump.hpp"
#include "actors/lane/prompt_pulls.hpp"
#include "actors/lane/prompt_rebuilds.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using job = prompt_part::job;
using pieces_of_prompts = std::vector<scheduler::prefill_piece>;

bool has(const pieces_of_prompts& pieces, sequence_id first) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const auto& p) { return p.sequence == first; });
}

/// An aborted iteration may still run on a device, until the next attempt has ended.
bool runs(const lane_state& st, sequence_id first) {
  return has(st.prompts.again, first)
         || std::any_of(st.line.flights().begin(), st.line.flights().end(),
                        [&](const auto& x) { return has(x.pieces(), first); });
}

/// Answers a job that is over.
void answer(lane_ptr self, sequence_id first) {
  auto node = self->state.prompts.jobs.extract(first);
  auto& over = node.mapped();
  if (over.what.rebuild) rebuild_ended(self, over);
  if (over.cancelled) {
    over.promise.deliver(caf::make_error(ec::cancelled));
    return;
  }
  tell_of_pulls(self, over.what, true);
  // Its request, which reports a whole prompt, may be too late with that.
  if (const auto& target = self->state.config.target; self->state.handing && over.computed > 0)
    self->send(target.allocator, kv_filled{first, target.epoch, over.computed});
  over.promise.deliver(std::move(*over.result));
}

} // namespace

void leave_seat(lane_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.prompts.jobs.at(first);
  st.prompts.plan->remove(first);
  if (j.seat) st.tokens.batch.table().leave(*j.seat);
  j.seat.reset();
  free_slots(st, j);
}

void enqueue(lane_ptr self, sequence_id first, bool again) {
  auto& part = self->state.prompts;
  const auto& j = part.jobs.at(first);
  const auto tokens = static_cast<uint32_t>(j.what.tokens.size());
  if (j.what.rebuild)
    part.plan->add(scheduler::rebuild_entry{first, tokens, j.came, j.deadline, j.what.cached});
  else if (again)
    part.plan->add_first(first, tokens, j.what.cached, j.came, j.what.scored > 0);
  else
    part.plan->add(first, tokens, j.what.cached, j.came, j.what.scored > 0);
}

void settle(lane_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.prompts.jobs.at(first);
  if (runs(st, first)) return;
  const bool failed = j.failure || j.cancelled;
  if (failed) leave_seat(self, first);
  if (j.pulls > 0 || (!failed && !j.result)) return;
  if (j.failure && !j.cancelled && ++j.failures < attempts_max) {
    spdlog::warn("prefill retried sequence={} failures={} reason=\"{}\"",
                 static_cast<uint64_t>(first), j.failures, explain(self->system(), j.failure));
    j.failure = caf::error{};
    j.result.reset();
    j.scores.clear();
    j.computed = 0;
    enqueue(self, first, true);
    return;
  }
  if (!j.cancelled && j.failure) {
    // The pipeline is made anew, and the request asks again. Where nobody has said that a device
    // failed, it is the links that are not to be trusted.
    const auto why = is_silence(j.failure)          ? ec::attempts_silent
                     : j.failure == ec::rows_differ ? ec::rows_differ
                                                    : ec::attempts_spent;
    end_lane(self, caf::make_error(why, explain(self->system(), j.failure)));
    return;
  }
  answer(self, first);
}

} // namespace lamella::actors
