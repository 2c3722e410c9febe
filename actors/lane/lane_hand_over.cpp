#include "actors/lane/lane_hand_over.hpp"

#include "actors/lane/lane_pump.hpp"

namespace lamella::actors {

namespace {

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

caf::result<bool> on_hand_over(lane_ptr self, const hand_over& x) {
  auto& st = self->state;
  if (!x.stop) {
    tell_positions(self);
    return true;
  }
  st.handing = true;
  st.handed = self->make_response_promise<bool>();
  auto promise = *st.handed;
  pump(self);
  return promise;
}

} // namespace lamella::actors
