#include "actors/decode/idle_kv.hpp"

#include "actors/protocol/kv.hpp"

#include <algorithm>
#include <ranges>

namespace lamella::actors {

void take_idle_kv(scheduler_ptr self, sequence_id head) {
  auto& st = self->state;
  const auto may_lose = [&](sequence_id x) {
    const bool queued = st.waiting.contains(x) && !st.held.contains(x);
    return x != head && (!queued || st.seated.empty());
  };
  const auto youngest = std::ranges::find_if(st.idle | std::views::reverse, may_lose);
  if (youngest == st.idle.rend()) return;
  const auto sequence = *youngest;
  st.idle.erase(sequence);
  // A refused reservation gets kv_freed, so the head asks again.
  self->send(st.allocator, kv_release{{sequence}, st.config.epoch});
}

} // namespace lamella::actors
