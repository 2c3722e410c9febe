#include "actors/decode/batch_eviction.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

void evict_youngest(batch_actor::stateful_pointer<batch_state> self, uint32_t table) {
  auto& st = self->state;
  batch_state::seat* youngest = nullptr;
  for (auto& [number, s] : st.seats) {
    if (s.member.member != table) continue;
    if (s.evicted) return; // one at a time: its slots are on their way back
    if (!s.leaving && (youngest == nullptr || s.member.sequence > youngest->member.sequence))
      youngest = &s;
  }
  if (youngest == nullptr) return;
  youngest->leaving = youngest->evicted = true;
  if (st.config.target.metrics) st.config.target.metrics->preempted();
  spdlog::info("preempted sequence={} position={}",
               static_cast<uint64_t>(youngest->member.sequence), youngest->member.position);
}

} // namespace lamella::actors
