#include "actors/lane/token_masks.hpp"

#include "actors/protocol/values.hpp"

namespace lamella::actors {

namespace {

using mask_follower = void (*)(lane_ptr, uint32_t, const caf::error&);

void on_mask(lane_ptr self, sequence_id sequence, uint64_t question,
             caf::expected<model::constrained_answer> answer, mask_follower then) {
  auto& part = self->state.tokens;
  if (!answer && peer_lost(answer.error())) return self->quit(peer_gone());
  const auto seat = part.batch.seat_of(sequence);
  if (!seat) return;
  auto& d = part.decoders.at(sequence);
  if (d.awaits_mask != question) return; // it has left, and come back since
  d.awaits_mask = 0;
  part.batch.wait(*seat, false);
  if (answer) {
    d.answer = std::move(*answer);
    d.changes.mask = d.answer.mask();
  }
  then(self, *seat, answer ? caf::error{} : answer.error());
}

} // namespace

void follow(lane_ptr self, uint32_t seat, std::span<const token_id> tokens, mask_follower then) {
  auto& st = self->state;
  auto& part = st.tokens;
  const auto sequence = part.batch.at(seat).of.sequence;
  auto& d = part.decoders.at(sequence);
  for (const auto t : tokens) d.history.generated(t);
  d.changes.edits = d.history.edits(d.asked.wanted);
  d.answer.generated(tokens);
  if (!st.config.tokens->masks) d.answer.make_mask();
  if (d.answer.knows_mask()) {
    d.changes.mask = d.answer.mask();
    return;
  }
  const auto question = d.awaits_mask = ++part.questions;
  part.batch.wait(seat, true);
  self->request(st.config.tokens->masks, mask_timeout, d.answer)
      .then(
          [=](model::constrained_answer& answer) {
            on_mask(self, sequence, question, std::move(answer), then);
          },
          [=](caf::error& reason) { on_mask(self, sequence, question, std::move(reason), then); });
}

} // namespace lamella::actors
