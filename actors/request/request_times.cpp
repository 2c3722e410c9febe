#include "actors/request/request_times.hpp"

#include <algorithm>

namespace lamella::actors {

void note_admitted(request_state& st, std::chrono::steady_clock::time_point when) {
  if (!st.admitted) st.admitted = when;
}

void note_start(request_state& st, std::chrono::steady_clock::time_point when) {
  if (!std::exchange(st.has_started, true)) st.started = when;
}

void goes_on(request_state& st, request_sequence& s, std::chrono::steady_clock::time_point now) {
  const auto* method = std::exchange(s.recovery, nullptr);
  if (!s.paused_since || st.down) return;
  ++st.recoveries;
  const auto since = s.text->tokens().empty() ? *s.paused_since : s.last_token;
  st.longest_pause = std::max(st.longest_pause, now - since);
  if (st.trace && st.pauses.size() < request_state::pauses_kept)
    st.pauses.push_back({since, now, method});
  s.paused_since.reset();
  if (st.server->pauses && !st.paused()) st.server->pauses->goes_on(st.id);
}

} // namespace lamella::actors
