#include "actors/kv/kv_reservations.hpp"

#include "actors/kv/kv_slot_metrics.hpp"
#include "actors/kv/kv_trimming.hpp"
#include "actors/protocol/kv.hpp"
#include "base/buggify.hpp"
#include "base/failpoint.hpp"
#include "scheduler/kv/kv_grants.hpp"

#include <algorithm>
#include <utility>

namespace lamella::actors {

namespace {

/// Pretends to be full only if another holder exists. When that holder frees slots, the waiters are
/// notified.
bool acts_full(const kv_allocator_state& st, const kv_reserve& x) {
  const auto& holders = st.ledger.holders;
  const auto own = std::ranges::count_if(
      x.needs, [&](const auto& need) { return holders.contains(need.holder); });
  return holders.size() > static_cast<size_t>(own) && buggify(buggify_point::slots_short);
}

void note_refused(kv_allocator_state& st, const kv_reserve& x, const caf::strong_actor_ptr& asker) {
  if (!x.tell || !asker) return;
  st.waiters.push_back(caf::actor_cast<kv_waiter_actor>(asker));
  st.wanted = x.keep_free;
  for (const auto& asked : x.needs) st.wanted += asked.slots;
}

/// How much of the prompts the prefix cache had.
void count_hits(net::metrics& metrics, const kv_reserve& x, const kv_grant& granted) {
  for (size_t i = 0; i < x.needs.size(); ++i) {
    const auto& text = x.needs[i].text;
    if (!text.tokens.empty() && !text.computed && !granted.holdings[i].kept)
      metrics.prefix_cache(text.tokens.size(), granted.holdings[i].cached);
  }
}

caf::expected<kv_grant> reserve(kv_allocator_ptr self, const kv_reserve& x,
                                const caf::strong_actor_ptr& asker) {
  auto& st = self->state;
  if (!is_current(st, x.epoch))
    return caf::make_error(ec::aborted, "of epoch " + std::to_string(x.epoch));
  auto holdings = acts_full(st, x) ? std::nullopt
                                   : scheduler::reserve(st.ledger, x.needs, x.keep_free, now(self));
  if (!holdings) {
    note_refused(st, x, asker);
    return caf::make_error(ec::kv_exhausted);
  }
  kv_grant result{std::move(*holdings)};
  if (st.config.metrics) count_hits(*st.config.metrics, x, result);
  if (x.tell) st.wanted = 0;
  note_used(self);
  publish(self);
  return result;
}

} // namespace

bool is_current(const kv_allocator_state& st, uint64_t epoch) {
  if (epoch == st.ledger.epoch) return true;
  if (st.config.metrics) st.config.metrics->fenced(net::fence::epoch);
  return false;
}

caf::result<kv_grant> on_reserve(kv_allocator_ptr self, const kv_reserve& x) {
  failpoint_or_throw(failpoint::allocator_reserve);
  const auto& asker = self->current_sender();
  if (self->state.trimming.waiting > 0) {
    auto promise = self->make_response_promise<kv_grant>();
    self->state.waiting_for_trim.push_back({x, asker, promise});
    return promise;
  }
  auto answer = reserve(self, x, asker);
  if (answer) return std::move(*answer);
  return std::move(answer.error());
}

void on_trimmed(kv_allocator_ptr self) {
  for (auto& x : std::exchange(self->state.waiting_for_trim, {})) {
    auto answer = reserve(self, x.question, x.asker);
    if (answer)
      x.promise.deliver(std::move(*answer));
    else
      x.promise.deliver(std::move(answer.error()));
  }
}

} // namespace lamella::actors
