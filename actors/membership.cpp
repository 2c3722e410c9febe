#include "actors/membership.hpp"

namespace lamella::actors {

membership_actor::behavior_type
membership(membership_actor::stateful_pointer<membership_state> self, uint64_t epoch) {
  self->state.epoch = epoch;
  return {
      [self](const worker_info& joined) {
        auto& st = self->state;
        auto& seat = st.seats[joined.seat];
        const auto incarnation = seat.incarnation;
        if (incarnation > 0) ++st.epoch;
        seat = joined;
        seat.incarnation = std::max(incarnation + 1, joined.incarnation);
      },
      [self](status_atom) -> caf::result<system_status> {
        system_status answer;
        answer.epoch = self->state.epoch;
        for (const auto& [name, seat] : self->state.seats) answer.workers.push_back(seat);
        return answer;
      },
  };
}

} // namespace lamella::actors
