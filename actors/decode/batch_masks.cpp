#include "actors/decode/batch_masks.hpp"

#include "actors/protocol/values.hpp"

namespace lamella::actors {

namespace {

using seat = batch_state::seat;
using mask_follower = void (*)(batch_ptr, seat&, const caf::error&);

void on_mask(batch_ptr self, sequence_id sequence, uint64_t question,
             caf::expected<model::constrained_answer> answer, mask_follower then) {
  auto& st = self->state;
  if (!answer && peer_lost(answer.error())) return self->quit(peer_gone());
  const auto found = st.seat_of.find(sequence);
  if (found == st.seat_of.end()) return;
  auto& s = st.seats.at(found->second);
  if (s.awaits_mask != question) return; // it has left, and come back since
  s.awaits_mask = 0;
  if (answer) {
    s.answer = std::move(*answer);
    s.changes.mask = s.answer.mask();
  }
  then(self, s, answer ? caf::error{} : answer.error());
}

} // namespace

void follow(batch_ptr self, seat& s, std::span<const token_id> tokens, mask_follower then) {
  auto& st = self->state;
  for (const auto t : tokens) s.history.generated(t);
  s.changes.edits = s.history.edits(s.member.wanted);
  s.answer.generated(tokens);
  if (!st.config.masks) s.answer.make_mask();
  if (s.answer.knows_mask()) {
    s.changes.mask = s.answer.mask();
    return;
  }
  const auto sequence = s.member.sequence;
  const auto question = s.awaits_mask = ++st.questions;
  self->request(st.config.masks, mask_timeout, s.answer)
      .then(
          [=](model::constrained_answer& answer) {
            on_mask(self, sequence, question, std::move(answer), then);
          },
          [=](caf::error& reason) { on_mask(self, sequence, question, std::move(reason), then); });
}

} // namespace lamella::actors
