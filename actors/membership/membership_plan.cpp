#include "actors/membership/membership_plan.hpp"

#include "actors/membership/membership_failing.hpp"

#include <algorithm>
#include <stdexcept>

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

/// Of these seats, without the slow ones where that costs no part.
std::optional<next_epoch> plan_of(const membership_state& st, const epoch_design& design,
                                  const std::set<seat>& seats) {
  auto all = scheduler::plan_epoch(design.shape, seats, st.held, false);
  if (!all) return std::nullopt;
  auto well = scheduler::plan_epoch(design.shape, well_seats(st, seats), st.held, false);
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

/// The sizes in force with that many shards, of which none has more KV than each has now. Nothing:
/// a pool of that size is impossible, or too small for a request.
std::optional<epoch_design> with_shards(const membership_state& st, uint32_t shards) {
  const auto& now = st.config.pool;
  const auto sizes = scheduler::sizes_of(st.config.shape);
  try {
    auto design = st.config.design_of(scheduler::with_size(sizes, worker_role::attention, shards));
    if (!now.whole_requests)
      design.pool.slots = std::min(
          design.pool.slots, static_cast<uint32_t>(uint64_t{now.slots} * shards / now.shards));
    if (design.pool.slots < st.config.least_slots) return std::nullopt;
    return design;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

/// With fewer shards than the sizes in force have, as many as possible.
std::optional<next_epoch> fewer_shards(const membership_state& st) {
  if (!st.was_open || !st.config.design_of || st.config.least_slots == 0) return std::nullopt;
  const auto ready = ready_seats(st);
  const auto left =
      static_cast<uint32_t>(std::ranges::count(ready, worker_role::attention, &seat::role));
  for (auto shards = std::min(left, st.config.shape.shards - 1); shards > 0; --shards)
    if (const auto design = with_shards(st, shards))
      if (auto plan = plan_of(st, *design, ready)) return plan;
  return std::nullopt;
}

} // namespace

std::optional<next_epoch> next_plan(const membership_state& st, bool fewer) {
  if (!st.was_open && !may_begin(st)) return std::nullopt;
  if (auto plan = plan_of(st, in_force(st), staying_seats(st))) return plan;
  // A draining worker is better than none.
  if (auto plan = plan_of(st, in_force(st), ready_seats(st))) return plan;
  if (wants_other_sizes(st))
    if (auto plan = plan_of(st, st.config.design_of(st.wanted), ready_seats(st))) return plan;
  return fewer ? fewer_shards(st) : std::nullopt;
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
  if (!drains && !scheduler::could_grow(st.config.shape, st.newest.plan, staying))
    return std::nullopt;
  return plan;
}

scheduler::kv_part part_of_shard(const membership_state& st, const epoch_design& design,
                                 uint32_t number) {
  const auto& pool = design.pool;
  return scheduler::part_of_member(st.config.kv_heads, pool.shards, number, pool.whole_requests,
                                   pool.slots);
}

bool moves_kv(const membership_state& st, const membership_state::numbered_plan& next) {
  // Sequences of members that are no more, or that new members get.
  if (next.design.pool.whole_requests && next.design.pool.shards != st.config.pool.shards)
    return true;
  for (uint32_t i = 0; i < next.design.pool.shards; ++i)
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
