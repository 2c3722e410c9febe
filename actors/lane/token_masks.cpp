#include "actors/lane/token_masks.hpp"

#include "actors/protocol/values.hpp"

namespace lamella::actors {

namespace {

using seat = token_part::seat;
using mask_follower = void (*)(lane_ptr, seat&, const caf::error&);

void on_mask(lane_ptr self, sequence_id sequence, uint64_t question,
             caf::expected<model::constrained_answer> answer, mask_follower then) {
  auto& st = self->state;
  if (!answer && peer_lost(answer.error())) return self->quit(peer_gone());
  const auto found = st.tokens.seat_of.find(sequence);
  if (found == st.tokens.seat_of.end()) return;
  auto& s = st.tokens.seats.at(found->second);
  if (s.awaits_mask != question) return; // it has left, and come back since
  s.awaits_mask = 0;
  if (answer) {
    s.answer = std::move(*answer);
    s.changes.mask = s.answer.mask();
  }
  then(self, s, answer ? caf::error{} : answer.error());
}

} // namespace

void follow(lane_ptr self, seat& s, std::span<const token_id> tokens, mask_follower then) {
  auto& st = self->state;
  for (const auto t : tokens) s.history.generated(t);
  s.changes.edits = s.history.edits(s.member.wanted);
  s.answer.generated(tokens);
  if (!st.config.tokens->masks) s.answer.make_mask();
  if (s.answer.knows_mask()) {
    s.changes.mask = s.answer.mask();
    return;
  }
  const auto sequence = s.member.sequence;
  const auto question = s.awaits_mask = ++st.tokens.questions;
  self->request(st.config.tokens->masks, mask_timeout, s.answer)
      .then(
          [=](model::constrained_answer& answer) {
            on_mask(self, sequence, question, std::move(answer), then);
          },
          [=](caf::error& reason) { on_mask(self, sequence, question, std::move(reason), then); });
}

} // namespace lamella::actors
