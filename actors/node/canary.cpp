#include "actors/node/canary.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/shared/exceptions.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using canary_ptr = canary_actor::stateful_pointer<canary_state>;

constexpr std::chrono::seconds canary_timeout{600};

constexpr caf::timespan look_at_least_every = std::chrono::seconds{1};

void give_back(canary_ptr self) {
  auto& st = self->state;
  st.running = false;
  self->send(st.server->allocator, kv_release{{st.sequence}, st.server->epoch});
  self->send(st.server->scheduler, retire{st.sequence});
}

void run(canary_ptr self) {
  auto& st = self->state;
  st.running = true;
  self->request(st.server->scheduler, canary_timeout, admit{st.sequence, 1, 1, true})
      .then(
          [self](const admitted& place) {
            auto& state = self->state;
            prefill x;
            x.first = state.sequence;
            x.tokens = {state.server->end_tokens.empty() ? 0 : state.server->end_tokens.front()};
            x.member = place.holdings.front().member;
            x.runs = place.holdings.front().runs;
            x.samplings.resize(1);
            x.samplings.front().temperature = 0;
            x.draws = {0};
            x.changes.resize(1);
            self->request(state.server->prefill_workers.at(place.prefill_worker), canary_timeout, x)
                .then([self](const prefilled&) { give_back(self); },
                      [self](caf::error&) { give_back(self); });
          },
          [self](caf::error&) {
            self->send(self->state.server->scheduler, withdraw{self->state.sequence});
            self->state.running = false;
          });
}

} // namespace

canary_actor::behavior_type canary(canary_actor::stateful_pointer<canary_state> self,
                                   service_ptr server, std::shared_ptr<pulse> beats,
                                   sequence_id sequence) {
  end_on_exceptions(self);
  self->state.server = std::move(server);
  self->state.beats = std::move(beats);
  self->state.sequence = sequence;
  self->send(self, caf::tick_atom_v);
  return {
      [self](caf::tick_atom) {
        auto& st = self->state;
        const auto interval = st.beats->max_age() / 2;
        const bool quiet = st.beats->count() == 0 || st.beats->age(self->clock().now()) >= interval;
        if (!st.running && quiet) run(self);
        // A reload may lower the age: a look is never far.
        self->delayed_send(self, std::min<caf::timespan>(interval / 2, look_at_least_every),
                           caf::tick_atom_v);
      },
  };
}

} // namespace lamella::actors
