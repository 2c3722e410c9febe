#include "actors/kv/kv_trimming.hpp"

#include "actors/protocol/kv.hpp"
#include "gpu/runners/kv_pages.hpp"

#include <utility>

#include <malloc.h>

namespace lamella::actors {

namespace {

/// How long a pool stands empty before its memory goes back to the system.
constexpr std::chrono::seconds trim_after{1};

} // namespace

void note_used(kv_allocator_ptr self) {
  auto& st = self->state;
  if (used_slots(st.ledger) >= gpu::kv_pages::slots_worth_pages) st.trimming.done = false;
}

void trim_later(kv_allocator_ptr self) {
  auto& st = self->state;
  if (used_slots(st.ledger) > 0 || st.trimming.done) return;
  ++st.trimming.ticket;
  self->delayed_send(self, trim_after, wake_atom_v);
}

void trim(kv_allocator_ptr self, void (*done)(kv_allocator_ptr self)) {
  auto& st = self->state;
  auto& x = st.trimming;
  if (--x.ticket > 0 || used_slots(st.ledger) > 0 || x.done || x.waiting > 0) return;
  x.done = true;
  x.waiting = static_cast<uint32_t>(st.shards.size());
  const auto answered = [self, done, round = ++x.round] {
    auto& part = self->state.trimming;
    if (part.round != round || --part.waiting > 0) return;
    malloc_trim(0); // what requests have freed goes back as well
    done(self);
  };
  for (auto& shard : st.shards)
    self->request(shard, std::chrono::seconds{10}, kv_trim{})
        .then([answered](bool) { answered(); }, [answered](caf::error&) { answered(); });
}

void trimming_in_epoch(kv_allocator_ptr self, bool lost) {
  auto& st = self->state;
  if (lost) {
    st.trimming.waiting = 0;
    ++st.trimming.round;
  }
  for (auto& late : std::exchange(st.waiting_for_trim, {}))
    late.promise.deliver(caf::make_error(ec::aborted));
}

} // namespace lamella::actors
