#include "actors/kv_allocator.hpp"

#include <algorithm>

#include <malloc.h>

namespace lamella::actors {

namespace {

using allocator_ptr = kv_allocator_actor::stateful_pointer<kv_allocator_state>;

/// How long a pool stands empty before its memory goes back to the system.
constexpr std::chrono::seconds trim_after{1};
/// So few slots are not worth it: the canary of an idle service uses one every few seconds, and the
/// system would clear a huge page per layer for it each time.
constexpr uint32_t worth_trimming = 64;

void publish(allocator_ptr self) {
  const auto& st = self->state;
  if (!st.config.numbers) return;
  for (size_t i = 0; i < st.pools.size(); ++i) {
    const auto& pool = st.pools[i];
    st.config.numbers->set_kv_slots(st.config.tables[i], net::slot_state::free, pool.free());
    st.config.numbers->set_kv_slots(st.config.tables[i], net::slot_state::used, pool.used());
  }
}

uint32_t used(const kv_allocator_state& st) {
  uint32_t total = 0;
  for (const auto& pool : st.pools) total += pool.used();
  return total;
}

/// The table of a holder: where it already is, where its source is, else the emptiest.
uint32_t place(const kv_allocator_state& st, const kv_need& need) {
  if (auto own = st.holders.find(need.holder); own != st.holders.end()) return own->second.member;
  if (auto source = st.holders.find(need.share_from);
      need.share_tokens > 0 && source != st.holders.end())
    return source->second.member;
  const auto best = std::max_element(st.pools.begin(), st.pools.end(),
                                     [](auto& a, auto& b) { return a.free() < b.free(); });
  return static_cast<uint32_t>(best - st.pools.begin());
}

/// Grants one need or changes nothing.
std::optional<kv_holding> grant(kv_allocator_state& st, const kv_need& need, uint32_t keep_free) {
  const auto member = place(st, need);
  auto& pool = st.pools[member];
  if (pool.free() < uint64_t{need.slots} + keep_free) return std::nullopt;
  kv_holding result{need.holder, member, {}};
  if (need.share_tokens > 0) {
    const auto source = st.holders.find(need.share_from);
    if (source == st.holders.end()) return std::nullopt;
    result.runs = scheduler::prefix(source->second.runs, need.share_tokens);
    pool.share(result.runs);
  }
  auto& held = st.holders[need.holder];
  held.member = member;
  std::optional<uint32_t> after;
  if (!held.runs.empty()) after = held.runs.back().first + held.runs.back().length;
  const auto taken = pool.take(need.slots, after);
  result.runs.insert(result.runs.end(), taken->begin(), taken->end());
  scheduler::append(held.runs, result.runs);
  return result;
}

void release(kv_allocator_state& st, sequence_id holder) {
  auto node = st.holders.extract(holder);
  if (node) st.pools[node.mapped().member].give_back(node.mapped().runs);
}

caf::expected<kv_grant> reserve(allocator_ptr self, const kv_reserve& x,
                                const caf::strong_actor_ptr& asker) {
  auto& st = self->state;
  kv_grant result;
  for (const auto& need : x.needs) {
    // A need that follows another one of the same holder is not used by anybody, so taking back is
    // giving back all that the holder has got from this call.
    auto holding = grant(st, need, x.keep_free);
    if (!holding) {
      for (const auto& done : result.holdings) {
        auto& held = st.holders.at(done.holder);
        st.pools[done.member].give_back(done.runs);
        auto keep = scheduler::length_of(held.runs) - scheduler::length_of(done.runs);
        held.runs = scheduler::prefix(held.runs, keep);
        if (held.runs.empty()) st.holders.erase(done.holder);
      }
      if (x.tell && asker) st.waiters.push_back(caf::actor_cast<kv_waiter_actor>(asker));
      return caf::make_error(ec::kv_exhausted);
    }
    result.holdings.push_back(std::move(*holding));
  }
  if (used(st) >= worth_trimming) st.trimmed = false;
  publish(self);
  return result;
}

void on_release(allocator_ptr self, const kv_release& x) {
  auto& st = self->state;
  for (auto holder : x.holders) release(st, holder);
  uint32_t free = 0;
  for (const auto& pool : st.pools) free += pool.free();
  for (auto& waiter : std::exchange(st.waiters, {})) self->send(waiter, kv_freed{free});
  if (used(st) == 0 && !st.trimmed) {
    ++st.trim_ticket;
    self->delayed_send(self, trim_after, wake_atom_v);
  }
  publish(self);
}

/// A second has passed since some moment at which the pool was empty.
void trim(allocator_ptr self) {
  auto& st = self->state;
  if (--st.trim_ticket > 0 || used(st) > 0 || st.trimmed || st.trimming > 0) return;
  st.trimmed = true;
  st.trimming = static_cast<uint32_t>(st.config.shards.size());
  const auto done = [self] {
    if (--self->state.trimming > 0) return;
    malloc_trim(0); // what requests have freed goes back as well
    for (auto& x : std::exchange(self->state.waiting_for_trim, {})) {
      auto answer = reserve(self, x.question, x.asker);
      if (answer)
        x.promise.deliver(std::move(*answer));
      else
        x.promise.deliver(std::move(answer.error()));
    }
  };
  for (auto& shard : st.config.shards)
    self->request(shard, std::chrono::seconds{10}, kv_trim{})
        .then([done](bool) { done(); }, [done](caf::error&) { done(); });
}

} // namespace

kv_allocator_actor::behavior_type
kv_allocator(kv_allocator_actor::stateful_pointer<kv_allocator_state> self,
             kv_allocator_config config) {
  auto& st = self->state;
  st.config = std::move(config);
  for (size_t i = 0; i < st.config.tables.size(); ++i) st.pools.emplace_back(st.config.slots);
  publish(self);
  return {
      [self](const kv_reserve& x) -> caf::result<kv_grant> {
        const auto& asker = self->current_sender();
        if (self->state.trimming == 0) {
          auto answer = reserve(self, x, asker);
          if (answer) return std::move(*answer);
          return std::move(answer.error());
        }
        auto promise = self->make_response_promise<kv_grant>();
        self->state.waiting_for_trim.push_back({x, asker, promise});
        return promise;
      },
      [self](const kv_release& x) { on_release(self, x); },
      [self](status_atom) -> caf::result<kv_usage> {
        kv_usage usage;
        for (const auto& pool : self->state.pools) {
          usage.slots.push_back(pool.slots());
          usage.used.push_back(pool.used());
        }
        return usage;
      },
      [self](wake_atom) { trim(self); },
  };
}

} // namespace lamella::actors
