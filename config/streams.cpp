#include "config/streams.hpp"

namespace lamella::config {

namespace {

bool mixes(const settings& x) { return x.batching.launches == launches::mixed; }

/// Prompts that prefill workers with seats do not take.
bool some_stay(const settings& x) {
  return x.kv.prefix_cache.count() > 0 || x.pools.prefill.overflow_tokens > 0;
}

} // namespace

uint32_t prompt_streams(const settings& x) {
  const bool own = x.pools.prefill.has_seats() && x.pools.prefill_owns_kv();
  return mixes(x) && !own ? 0 : x.pools.prefill.members;
}

uint32_t prompt_batches(const settings& x) {
  const auto& prefill = x.pools.prefill;
  if (!mixes(x) || !prefill.has_seats()) return 0;
  // Else their own KV is for prompts that nobody else computes.
  const bool shares = !x.pools.prefill_owns_kv() || prefill.overflow_tokens > 0;
  return shares ? prefill.members : 0;
}

uint32_t mixed_streams(const settings& x) {
  if (mixes(x) || !x.pools.prefill_owns_kv()) return 0;
  return some_stay(x) ? x.pools.model.members : 0;
}

uint32_t mixed_batches(const settings& x) {
  if (!mixes(x) || (prompt_streams(x) > 0 && !some_stay(x))) return 0;
  return x.batching.batches_for(x.pools.model.members) + prompt_batches(x);
}

uint32_t served_streams(const settings& x) {
  return x.batching.batches_for(x.pools.model.members) + prompt_batches(x) + prompt_streams(x)
         + mixed_streams(x);
}

} // namespace lamella::config
