#include "actors/lane/prompt_rebuilds.hpp"

#include "actors/protocol/batches.hpp"
#include "actors/protocol/prefills.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using seconds = std::chrono::duration<double>;

void tell_batches(lane_ptr self, bool some) {
  const auto& config = self->state.config;
  for (const auto& x : config.prompts->decode_beside)
    self->send(x, kv_rebuilding{config.target.stream, some});
}

} // namespace

void rebuild_began(lane_ptr self, prompt_part::job& j) {
  auto& x = self->state.prompts.rebuilds;
  const auto now = self->clock().now();
  j.came = now.time_since_epoch();
  j.deadline = j.came + std::chrono::milliseconds{j.what.slack_ms};
  if (x.waiting++ > 0) return;
  x = {1, 0, 0, false, now};
  tell_batches(self, true);
}

void rebuild_ended(lane_ptr self, const prompt_part::job& j) {
  auto& st = self->state;
  auto& x = st.prompts.rebuilds;
  if (j.result && !j.failure && !j.cancelled) {
    ++x.prompts;
    const auto computed = j.what.tokens.size() - j.what.cached;
    x.tokens += computed;
    if (st.config.target.metrics) st.config.target.metrics->kv_rebuilt(computed);
  }
  if (--x.waiting > 0) return;
  tell_batches(self, false);
  const auto took = seconds{self->clock().now() - x.since}.count();
  if (x.tokens > 0 && st.config.target.metrics) {
    st.config.target.metrics->kv_remade_bytes("recompute",
                                              x.tokens * st.config.prompts->token_bytes);
    st.config.target.metrics->kv_remade("recompute", took);
  }
  spdlog::info("lost KV recomputed sequences={} tokens={} seconds={:.2f}", x.prompts, x.tokens,
               took);
}

void announce_rebuild(lane_state& st, uint64_t tokens, std::chrono::nanoseconds took) {
  auto& x = st.prompts.rebuilds;
  const auto left = st.prompts.plan->rebuild_tokens();
  if (left == 0 || std::exchange(x.announced, true)) return;
  spdlog::info("lost KV queued for recomputation sequences={} tokens={} expected_seconds={:.1f}",
               x.waiting, left,
               static_cast<double>(left) / static_cast<double>(tokens) * seconds{took}.count());
}

} // namespace lamella::actors
