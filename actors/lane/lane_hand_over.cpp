#include "actors/lane/lane_hand_over.hpp"

#include "actors/lane/lane_pump.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"

#include <utility>

namespace lamella::actors {

namespace {

/// Whoever asks where an iteration ends is about to stop this lane, and asks again each time. If
/// nothing comes of it, launches run ahead again after so many.
constexpr uint32_t launches_in_step = 8;

/// For so long prompts on own KV are computed further while their lane hands over. Most end within
/// it; new prompts wait meanwhile.
constexpr std::chrono::seconds own_prompts_grace{2};

/// The allocator learns what of the sequences is committed.
void tell_positions(lane_ptr self) {
  const auto& st = self->state;
  const auto& target = st.config.target;
  for (const auto& [sequence, position] : st.tokens.batch.positions())
    self->send(target.allocator, kv_filled{sequence, target.epoch, position});
}

/// Whether the next epoch can go on with what the shards of the pool have of that prompt: it comes
/// from the prefix cache, which has no slots without parity and nothing for scored prompts.
bool can_go_on(const prefill_own_kv& own, const prompt_part::job& j) {
  return own.caches_prefixes && j.mode == scheduler::pull_mode::layered && j.what.scored == 0
         && !own.layout.has_parity(j.what.member);
}

/// The allocator learns what shards have pulled of prompts that have not ended.
void tell_begun_prompts(lane_ptr self) {
  const auto& st = self->state;
  if (!st.config.prompts || !st.config.prompts->own) return;
  const auto& target = st.config.target;
  for (const auto& [first, j] : st.prompts.jobs)
    if (can_go_on(*st.config.prompts->own, j) && !j.failure && !j.cancelled && j.computed > 0)
      self->send(target.allocator, kv_filled{first, target.epoch, j.computed});
}

} // namespace

void stop_own_prompts(lane_ptr self) {
  auto& st = self->state;
  if (!st.handing || self->clock().now() < st.prompts_until) return;
  if (!st.config.prompts || !st.config.prompts->own) return;
  for (const auto& [first, j] : st.prompts.jobs)
    if (can_go_on(*st.config.prompts->own, j)) st.prompts.plan->remove(first);
}

void finish_hand_over(lane_ptr self) {
  auto& st = self->state;
  if (!st.handed || !st.prompts.pulls.empty()) return;
  tell_positions(self);
  tell_begun_prompts(self);
  st.handed->deliver(true);
  st.handed.reset();
}

void tell_iteration_end(lane_ptr self) {
  auto& st = self->state;
  if (!st.end_asked || st.line.flights().size() > 1) return;
  tell_positions(self);
  std::exchange(st.end_asked, std::nullopt)->deliver(true);
}

caf::result<bool> on_hand_over(lane_ptr self, const hand_over& x) {
  auto& st = self->state;
  if (!x.stop) {
    tell_positions(self);
    st.in_step = launches_in_step;
    if (st.line.idle()) return true;
    if (st.end_asked) st.end_asked->deliver(true);
    st.end_asked = self->make_response_promise<bool>();
    return *st.end_asked;
  }
  st.handing = true;
  st.prompts_until = self->clock().now() + own_prompts_grace;
  st.handed = self->make_response_promise<bool>();
  auto promise = *st.handed;
  pump(self);
  return promise;
}

} // namespace lamella::actors
