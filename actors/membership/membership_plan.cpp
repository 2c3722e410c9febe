#include "actors/membership/membership_plan.hpp"

#include "actors/membership/membership_failing.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using scheduler::epoch_plan;
using scheduler::seat;
using scheduler::worker_role;

/// Without the slow ones, but those that have KV: a shard keeps its part however slow it is.
std::set<seat> well_seats(const membership_state& st, std::set<seat> ready) {
  for (const auto& [where, m] : st.members)
    if (m.info.slow && std::ranges::find(st.held, where) == st.held.end()) ready.erase(where);
  return ready;
}

std::set<seat> staying_seats(const membership_state& st) {
  auto ready = ready_seats(st);
  for (const auto& where : st.draining) ready.erase(where);
  return ready;
}

/// Is the one epoch as large as the other in all that it has?
bool as_large(const epoch_plan& x, const epoch_plan& than) {
  return x.decoding >= than.decoding && x.replicas.size() >= than.replicas.size()
         && x.shards.size() >= than.shards.size();
}

/// Who holds the KV of each shard of an epoch of that design, by its number there; a seat that does
/// not exist: nobody.
std::vector<seat> held_in(const membership_state& st, const epoch_design& design) {
  constexpr seat nobody{worker_role::attention, ~0u};
  std::vector<seat> held;
  for (const auto member : scheduler::members_before(st.config.pool.layout, design.pool.layout))
    held.push_back(member < st.held.size() ? st.held[member] : nobody);
  return held;
}

/// Of these seats, without the slow ones where that costs no part.
std::optional<next_epoch> plan_of(const membership_state& st, const epoch_design& design,
                                  const std::set<seat>& seats) {
  const auto held = held_in(st, design);
  auto all = scheduler::plan_epoch(design.shape, seats, held, false);
  if (!all) return std::nullopt;
  auto well = scheduler::plan_epoch(design.shape, well_seats(st, seats), held, false);
  return next_epoch{design, well && as_large(*well, *all) ? std::move(*well) : std::move(*all)};
}

epoch_design in_force(const membership_state& st) { return {st.config.shape, st.config.pool}; }

bool wants_other_sizes(const membership_state& st) {
  return st.config.design_of && st.wanted != scheduler::sizes_of(st.config.shape);
}

/// Whether an epoch has what it is opened for: the pool that changes its size has all members, and
/// no other pool has fewer than now, but for what it shall not have any more.
bool is_complete(const membership_state& st, const next_epoch& x) {
  const auto& shape = x.design.shape;
  const auto& now = st.newest.plan;
  const auto enough = [](uint64_t got, uint64_t had, uint32_t wanted, uint32_t in_force) {
    return got >= (wanted == in_force ? std::min<uint64_t>(had, wanted) : wanted);
  };
  return enough(x.plan.decoding, now.decoding, shape.replicas, st.config.shape.replicas)
         && enough(x.plan.replicas.size() - x.plan.decoding, now.replicas.size() - now.decoding,
                   shape.prefill_seats, st.config.shape.prefill_seats)
         && x.plan.parity >= now.parity;
}

bool has_part(const epoch_plan& plan, const seat& where) {
  return std::ranges::find(plan.shards, where) != plan.shards.end()
         || std::ranges::find(plan.replicas, where) != plan.replicas.end();
}

/// Whether a worker has the KV of a part, as the epoch that serves writes it.
bool has_kv(const membership_state& st, const seat& where, const scheduler::kv_part& part) {
  const auto worker = st.memory.find(where);
  if (worker == st.memory.end()) return false;
  const auto cache = worker->second.find(part);
  return cache != worker->second.end() && std::ranges::any_of(st.caches, [&](const auto& x) {
           return x.second == cache->second;
         });
}

} // namespace

std::optional<next_epoch> next_plan(const membership_state& st) {
  if (!st.was_open && !may_begin(st)) return std::nullopt;
  if (auto plan = plan_of(st, in_force(st), staying_seats(st))) return plan;
  // A draining worker is better than none.
  if (auto plan = plan_of(st, in_force(st), ready_seats(st))) return plan;
  if (!wants_other_sizes(st)) return std::nullopt;
  return plan_of(st, st.config.design_of(st.wanted), ready_seats(st));
}

std::optional<next_epoch> better_plan(const membership_state& st) {
  if (!st.open) return std::nullopt;
  const auto staying = staying_seats(st);
  if (wants_other_sizes(st))
    if (auto plan = plan_of(st, st.config.design_of(st.wanted), staying);
        plan && is_complete(st, *plan))
      return plan;
  auto plan = plan_of(st, in_force(st), staying);
  if (!plan) plan = plan_of(st, in_force(st), ready_seats(st)); // who drains has to wait
  if (!plan) return std::nullopt;
  const bool drains = std::ranges::any_of(st.draining, [&](const seat& where) {
    return has_part(st.newest.plan, where) && !has_part(plan->plan, where);
  });
  if (!drains && !st.unequal && !scheduler::could_grow(st.config.shape, st.newest.plan, staying))
    return std::nullopt;
  return plan;
}

scheduler::kv_part part_of_shard(const membership_state& st, const epoch_design& design,
                                 uint32_t number) {
  return design.pool.layout.part(st.config.kv_heads, number);
}

bool moves_kv(const membership_state& st, const membership_state::numbered_plan& next) {
  const auto& before = st.config.pool.layout;
  const auto& layout = next.design.pool.layout;
  for (uint32_t cell = 0; cell < before.tables(); ++cell)
    if (before.in_use(cell) && !layout.in_use(cell)) return true; // its sequences go elsewhere
  for (uint32_t i = 0; i < layout.members(); ++i)
    if (!has_kv(st, next.plan.shards[i], part_of_shard(st, next.design, i))) return true;
  return false;
}

bool has_substitute(const membership_state& st, const seat& who) {
  auto others = well_seats(st, ready_seats(st));
  others.erase(who);
  const auto plan = scheduler::plan_epoch(st.config.shape, others, st.held, false);
  return plan && as_large(*plan, st.newest.plan)
         && (who.role != worker_role::attention || st.newest.plan.parity);
}

} // namespace lamella::actors
