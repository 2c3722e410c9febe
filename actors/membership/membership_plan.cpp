#include "actors/membership/membership_plan.hpp"

#include "actors/membership/pool_parts.hpp"
#include "scheduler/cell_tables.hpp"
#include "scheduler/membership/first_epoch.hpp"

#include <algorithm>
#include <stdexcept>

namespace lamella::actors {

namespace {

using scheduler::epoch_plan;
using scheduler::seat;
using scheduler::worker_role;

scheduler::beginning beginning_of(const membership_state& st) {
  return scheduler::first_epoch(st.config.shape, st.config.seats.all(), ready_seats(st),
                                failing_seats(st));
}

/// Without the slow ones, but those that have KV: a shard keeps its part however slow it is.
std::set<seat> well_seats(const membership_state& st, std::set<seat> ready) {
  for (const auto& [where, m] : st.members)
    if (m.info.slow && std::ranges::find(st.held, where) == st.held.end()) ready.erase(where);
  return ready;
}

std::set<seat> staying_seats(const membership_state& st) {
  auto ready = ready_seats(st);
  for (const auto& [where, since] : st.draining) ready.erase(where);
  return ready;
}

/// Those that stay, and draining shards that have KV: after a loss nobody loses what is there.
std::set<seat> keeping_seats(const membership_state& st) {
  const auto ready = ready_seats(st);
  auto seats = staying_seats(st);
  for (const auto& where : st.held)
    if (ready.contains(where)) seats.insert(where);
  return seats;
}

/// Is the one epoch as large as the other in all that it has?
bool as_large(const epoch_plan& x, const epoch_plan& than) {
  return x.decoding >= than.decoding && x.replicas.size() >= than.replicas.size()
         && x.shards.size() >= than.shards.size();
}

/// The layout with all the parity that the shape has.
scheduler::kv_layout whole_layout(const scheduler::epoch_shape& shape, const pool_terms& pool) {
  return pool.layout.with_parity(shape.parity);
}

/// Who holds the KV of each shard of an epoch of that design, as its shape numbers them; a seat
/// that does not exist: nobody.
std::vector<seat> held_in(const membership_state& st, const epoch_design& design) {
  const seat nobody{worker_role::attention, ~0u};
  std::vector<seat> held;
  for (const auto member : scheduler::members_before(whole_layout(st.config.shape, st.config.pool),
                                                     whole_layout(design.shape, design.pool)))
    held.push_back(member < st.held.size() ? st.held[member] : nobody);
  return held;
}

/// Of these seats, without the slow ones where that costs no part. Its layout has the parity that
/// its plan has.
std::optional<next_epoch> plan_of(const membership_state& st, const epoch_design& design,
                                  const std::set<seat>& seats) {
  const auto held = held_in(st, design);
  auto all = scheduler::plan_epoch(design.shape, seats, held, false);
  if (!all) return std::nullopt;
  auto well = scheduler::plan_epoch(design.shape, well_seats(st, seats), held, false);
  next_epoch next{design, well && as_large(*well, *all) ? std::move(*well) : std::move(*all)};
  auto& layout = next.design.pool.layout;
  layout = layout.with_parity(next.plan.parity);
  return next;
}

epoch_design in_force(const membership_state& st) { return {st.config.shape, st.config.pool}; }

/// Nothing: the sizes are impossible, or have become so, as where the process may use less memory.
std::optional<epoch_design> possible_design(const membership_state& st, const pool_sizes& sizes) {
  try {
    return st.config.design_of(sizes);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

/// With the sizes that are wanted, where those in force are others.
std::optional<next_epoch> plan_of_wanted(const membership_state& st, const std::set<seat>& seats) {
  if (!st.config.design_of || st.wanted == scheduler::sizes_of(st.config.shape))
    return std::nullopt;
  const auto design = possible_design(st, st.wanted);
  return design ? plan_of(st, *design, seats) : std::nullopt;
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
         && x.plan.parity.size() >= std::min(now.parity.size(), shape.parity.size());
}

/// Whether the KV of that shard of the newest epoch can be reconstructed from the others of its
/// cell.
bool has_parity_of(const membership_state& st, const seat& shard) {
  const auto cell = st.newest.design.pool.layout.cell_of(st.newest.number_of(shard));
  return st.whole_parity.first == st.newest.epoch && st.whole_parity.second.contains(cell);
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

/// The design of fewer shards, of which none has more KV than each has now. Nothing: such a pool is
/// impossible, or too small for a request.
std::optional<epoch_design> fewer_design(const membership_state& st, const pool_sizes& sizes) {
  auto design = possible_design(st, sizes);
  if (!design) return std::nullopt;
  const auto& now = st.config.pool.layout;
  auto& layout = design->pool.layout;
  for (uint32_t i = 0; i < std::min(layout.tables(), now.tables()); ++i)
    if (now.in_use(i))
      layout.cells[i].slots =
          std::min(layout.cells[i].slots,
                   static_cast<uint32_t>(uint64_t{now.cells[i].slots} * layout.cells[i].members
                                         / now.cells[i].members));
  if (layout.largest() < st.config.least_slots) return std::nullopt;
  return design;
}

/// Without the named cells by heads that lack a member, and without the members by requests that
/// are lacking.
std::optional<next_epoch> fewer_cells(const membership_state& st, const std::set<seat>& ready) {
  const auto& layout = st.config.pool.layout;
  auto sizes = scheduler::sizes_of(st.config.shape);
  for (uint32_t member = 0; member < layout.members(); ++member)
    if (member < st.held.size() && !ready.contains(st.held[member])) {
      const auto cell = scheduler::cell_of_table(layout.cell_of(member), sizes.cells.size());
      const auto left = scheduler::is_by_requests(sizes, cell) ? sizes.cells[cell] - 1 : 0;
      sizes = scheduler::with_cell(sizes, cell, left);
    }
  if (sizes.attention == 0 || sizes.attention == st.config.shape.shards) return std::nullopt;
  const auto design = fewer_design(st, sizes);
  return design ? plan_of(st, *design, ready) : std::nullopt;
}

/// With fewer shards than the sizes in force have, as many as possible.
std::optional<next_epoch> fewer_shards(const membership_state& st) {
  if (!st.was_open || !st.config.design_of || st.config.least_slots == 0) return std::nullopt;
  const auto ready = ready_seats(st);
  if (!st.config.cells.empty()) return fewer_cells(st, ready);
  const auto sizes = scheduler::sizes_of(st.config.shape);
  const auto left =
      static_cast<uint32_t>(std::ranges::count(ready, worker_role::attention, &seat::role));
  for (auto shards = std::min(left, st.config.shape.shards - 1); shards > 0; --shards)
    if (const auto design =
            fewer_design(st, scheduler::with_size(sizes, worker_role::attention, shards)))
      if (auto plan = plan_of(st, *design, ready)) return plan;
  return std::nullopt;
}

/// With the change under way, but without what else is wanted and lacks workers.
std::optional<next_epoch> changed_alone(const membership_state& st, const std::set<seat>& seats) {
  if (!st.changes->current || !st.config.design_of) return std::nullopt;
  const auto now = scheduler::sizes_of(st.config.shape);
  const auto sizes = with_wanted(now, st, *part_named(st, st.changes->current->pool));
  if (sizes == now || sizes == st.wanted) return std::nullopt;
  const auto design = possible_design(st, sizes); // or impossible beside what is left
  return design ? plan_of(st, *design, seats) : std::nullopt;
}

/// Where memory does not hold the KV of two epochs: what would have been opened beside the one that
/// served.
std::optional<next_epoch> plan_apart(const membership_state& st) {
  const auto staying = staying_seats(st);
  if (auto plan = plan_of_wanted(st, staying)) return plan;
  if (auto plan = changed_alone(st, staying)) return plan;
  return plan_of(st, in_force(st), staying);
}

} // namespace

bool has_part(const epoch_plan& plan, const seat& where) {
  return std::ranges::find(plan.shards, where) != plan.shards.end()
         || std::ranges::find(plan.replicas, where) != plan.replicas.end();
}

std::optional<next_epoch> next_plan(const membership_state& st, bool fewer) {
  if (!st.was_open && beginning_of(st) != scheduler::beginning::opens) return std::nullopt;
  if (st.apart)
    if (auto plan = plan_apart(st)) return plan;
  if (auto plan = plan_of(st, in_force(st), keeping_seats(st))) return plan;
  // A draining worker is better than none.
  if (auto plan = plan_of(st, in_force(st), ready_seats(st))) return plan;
  if (auto plan = plan_of_wanted(st, ready_seats(st))) return plan;
  return fewer ? fewer_shards(st) : std::nullopt;
}

std::optional<next_epoch> better_plan(const membership_state& st) {
  if (!st.open) return std::nullopt;
  const auto staying = staying_seats(st);
  if (auto plan = plan_of_wanted(st, staying); plan && is_complete(st, *plan)) return plan;
  if (auto plan = changed_alone(st, staying); plan && is_complete(st, *plan)) return plan;
  auto plan = plan_of(st, in_force(st), staying);
  if (!plan) plan = plan_of(st, in_force(st), ready_seats(st)); // who drains has to wait
  if (!plan) return std::nullopt;
  const bool drains = std::ranges::any_of(st.draining, [&](const auto& x) {
    return has_part(st.newest.plan, x.first) && !has_part(plan->plan, x.first);
  });
  if (!drains && !st.unequal && !st.other_pipeline
      && !scheduler::could_grow(st.config.shape, st.newest.plan, staying))
    return std::nullopt;
  return plan;
}

bool is_hopeless(const membership_state& st) {
  return beginning_of(st) == scheduler::beginning::hopeless
         && !(st.was_open && next_plan(st, true));
}

std::set<seat> failing_seats(const membership_state& st) {
  std::set<seat> result;
  for (const auto& [where, reason] : st.failing) result.insert(where);
  return result;
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
         && (who.role != worker_role::attention || has_parity_of(st, who));
}

void note_whole_parity(membership_state& st, uint64_t epoch, uint32_t cell) {
  auto& [newest, cells] = st.whole_parity;
  if (epoch > newest) st.whole_parity = {epoch, {}};
  if (epoch == newest) cells.insert(cell);
}

} // namespace lamella::actors
