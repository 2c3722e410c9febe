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

/// The allocator learns what of the sequences is committed.
void tell_positions(lane_ptr self) {
  const auto& st = self->state;
  const auto& target = st.config.target;
  for (const auto& [sequence, position] : st.tokens.batch.positions())
    self->send(target.allocator, kv_filled{sequence, target.epoch, position});
}

} // namespace

void finish_hand_over(lane_ptr self) {
  auto& st = self->state;
  if (!st.handed || !st.prompts.pulls.empty()) return;
  tell_positions(self);
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
  st.handed = self->make_response_promise<bool>();
  auto promise = *st.handed;
  pump(self);
  return promise;
}

} // namespace lamella::actors
