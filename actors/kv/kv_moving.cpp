#include "actors/kv/kv_moving.hpp"

#include "actors/kv/kv_grants.hpp"
#include "actors/kv/kv_move_tables.hpp"

#include <algorithm>
#include <set>

namespace lamella::actors {

namespace {

sequence_id holder_of(request_id what, uint32_t table) {
  return scheduler::sequence_of(what, table);
}

/// Adds slots to what a holder that is none has in a table.
void hold(kv_allocator_state& st, request_id what, uint32_t table,
          const std::vector<slot_run>& runs) {
  if (runs.empty()) return;
  auto& held = st.holders[holder_of(what, table)];
  held.member = table;
  held.epoch = st.epoch;
  scheduler::append(held.runs, runs);
}

/// The slots of a table of the next epoch.
scheduler::slot_pool& pool_of(kv_allocator_state& st, uint32_t table) {
  const auto found = st.moving->more.find(table);
  return found == st.moving->more.end() ? st.pools[table] : found->second.pool;
}

/// Notes that slots of a table of the next epoch are places of a move.
void hold_places(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs) {
  const auto found = st.moving->more.find(table);
  if (found == st.moving->more.end()) return hold(st, places_of_move, table, runs);
  scheduler::append(found->second.places, runs);
}

/// Gives such slots back.
void give_back_places(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs) {
  const auto found = st.moving->more.find(table);
  auto& held = found == st.moving->more.end() ? st.holders.at(holder_of(places_of_move, table)).runs
                                              : found->second.places;
  scheduler::slot_set gone{pool_of(st, table).slots()};
  gone.insert(runs);
  held = gone.part(held, false);
  pool_of(st, table).give_back(runs);
}

/// Free slots that the next table has not are given to nobody.
void withhold(kv_allocator_state& st) {
  const auto& m = *st.moving;
  for (uint32_t t = 0; t < st.pools.size(); ++t)
    if (const auto slots = m.slots_of(t); slots > 0 && st.pools[t].slots() > slots)
      hold(st, behind_of_move, t, st.pools[t].take_from(slots));
}

/// The places of these slots; those without one get one, if there is room. False: there is none.
bool find_places(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs) {
  auto& x = st.moving->from[table];
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot) {
      auto& place = x.slots[slot];
      if (place != kv_moving::nowhere) continue;
      if (!leaves(*st.moving, table, slot)) {
        place = slot;
        continue;
      }
      const auto to = x.into[slot];
      auto& pool = pool_of(st, to);
      if (pool.free() == 0 && !st.moving->more.contains(to)) st.prefixes[to].make_room(pool, 1);
      const auto after = slot > 0 ? x.slots[slot - 1] : kv_moving::nowhere;
      const auto taken =
          pool.take(1, after == kv_moving::nowhere ? std::nullopt : std::optional{after + 1});
      if (!taken) return false;
      if (taken->front().first >= st.moving->slots_of(to)) { // of a table that is larger now
        hold(st, behind_of_move, to, *taken);
        withhold(st);
        return find_places(st, table, runs);
      }
      hold_places(st, to, *taken);
      place = taken->front().first;
    }
  return true;
}

/// Slots whose content has changed since they were looked at: their copies count no more, and
/// nobody needs their places.
void forget_freed(kv_allocator_state& st) {
  for (uint32_t t = 0; t < st.moving->from.size(); ++t) {
    auto& x = st.moving->from[t];
    const auto freed = st.pools[t].take_freed();
    x.copied.erase(freed);
    for (const auto& run : freed)
      for (auto slot = run.first; slot < run.first + run.length; ++slot) {
        const auto place = std::exchange(x.slots[slot], kv_moving::nowhere);
        const bool left = leaves(*st.moving, t, slot);
        const auto to = std::exchange(x.into[slot], x.to);
        if (place != kv_moving::nowhere && left) give_back_places(st, to, {{place, 1}});
      }
  }
  follow_first_slots(st);
  withhold(st);
}

/// Committed slots of a table that were not copied.
std::vector<slot_run> left_of(const kv_allocator_state& st, uint32_t table) {
  scheduler::slot_set left{st.pools[table].slots()};
  if (st.moving->slots_of(table) > 0) {
    auto cached = st.pools[table].cached_runs();
    left.insert(cached);
  }
  for (const auto& [holder, held] : st.holders)
    if (held.member == table && !is_of_move(holder) && !st.pinned_by.contains(holder))
      left.insert(scheduler::prefix(held.runs, held.filled));
  left.erase(st.moving->from[table].copied.part(std::vector<slot_run>{{0, left.slots()}}, true));
  return left.part(std::vector<slot_run>{{0, left.slots()}}, true);
}

std::vector<slot_run> places_of(const kv_moving::table& x, const std::vector<slot_run>& runs) {
  std::vector<slot_run> places;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      scheduler::append(places, std::vector<slot_run>{{x.slots[slot], 1}});
  return places;
}

/// The first slots of a holder that have a place in that table. A sequence that began meanwhile
/// may share slots that go to several: those behind the first of another table are lost to it.
uint32_t placed(const kv_moving::table& x, const std::vector<slot_run>& runs, uint32_t to) {
  uint32_t count = 0;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++count)
      if (x.slots[slot] == kv_moving::nowhere || x.into[slot] != to) return count;
  return count;
}

/// The first of these slots that are copied.
uint32_t copied(const kv_moving::table& x, const std::vector<slot_run>& runs) {
  uint32_t count = 0;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++count)
      if (!x.copied.contains(slot)) return count;
  return count;
}

/// Gives a holder its slots in the next tables.
void rehome(kv_allocator_state& st, kv_allocator_state::holding& held) {
  const auto& x = st.moving->from[held.member];
  const auto to = x.into[held.runs.front().first];
  // Slots that nothing was written to yet have no place where others had to go.
  const auto stays = scheduler::prefix(held.runs, placed(x, held.runs, to));
  held.taken_over = copied(x, scheduler::prefix(stays, held.filled));
  held.filled = *held.taken_over;
  auto runs = places_of(x, stays);
  st.pools[to].share(runs);
  st.pools[held.member].give_back(held.runs);
  held.runs = std::move(runs);
  held.member = to;
}

/// The tables that only the next epoch has become those of the pool.
void add_new_tables(kv_allocator_state& st) {
  for (auto& [table, x] : st.moving->more) {
    for (auto t = st.pools.size(); t <= table; ++t) {
      st.pools.emplace_back(0);
      st.prefixes.emplace_back();
    }
    st.pools[table] = std::move(x.pool);
    st.unprotected.resize(st.pools.size());
    st.unprotected[table] = scheduler::slot_set{st.pools[table].slots()};
  }
}

void end_move(kv_allocator_state& st) {
  std::vector<sequence_id> over;
  for (const auto& [holder, held] : st.holders)
    if (is_of_move(holder)) over.push_back(holder);
  for (const auto holder : over) release(st, holder);
  for (auto& pool : st.pools) pool.watch_freed(false);
  st.moving.reset();
}

/// Parts that a smaller pool has not tell of no slots any more.
void forget_parts(const kv_allocator_config& before, const kv_tables& now) {
  if (!before.metrics) return;
  const auto names_of = [](const kv_tables& x) {
    std::set<std::string> names;
    for (const auto& table : x.list) {
      names.insert(table.members.begin(), table.members.end());
      names.insert(table.parity);
    }
    return names;
  };
  const auto stay = names_of(now);
  for (const auto& name : names_of(before.tables))
    if (!name.empty() && !stay.contains(name)) before.metrics->set_kv_slots(name, {});
}

} // namespace

bool begin_move(kv_allocator_state& st, const kv_move_begin& x) {
  if (!st.moving || st.moving->slots != x.slots || st.moving->level != x.level) {
    if (st.moving) end_move(st);
    st.moving.emplace();
    st.moving->slots = x.slots;
    st.moving->level = x.level;
    choose_tables(st);
    for (auto& pool : st.pools) pool.watch_freed(true);
    for (uint32_t t = 0; t < st.pools.size(); ++t) {
      scheduler::slot_set goes{st.pools[t].slots()};
      for (uint32_t slot = 0; slot < goes.slots(); ++slot)
        if (leaves(*st.moving, t, slot)) goes.insert(std::vector<slot_run>{{slot, 1}});
      st.prefixes[t].forget(st.pools[t], goes);
    }
  }
  forget_freed(st);
  for (uint32_t t = 0; t < st.pools.size(); ++t)
    if (!find_places(st, t, left_of(st, t))) {
      end_move(st);
      return false;
    }
  return true;
}

kv_move_piece next_of_move(kv_allocator_state& st, uint32_t slots_max) {
  kv_move_piece piece;
  if (!st.moving) return piece;
  auto& m = *st.moving;
  release(st, holder_of(pin_of_move, 0));
  m.pinned.clear();
  forget_freed(st);
  for (uint32_t t = 0; t < st.pools.size(); ++t) {
    const auto left = left_of(st, t);
    const auto count = scheduler::length_of(left);
    piece.left += count;
    if (!piece.from.empty() || count == 0) continue;
    const auto runs = scheduler::prefix(to_one_table(m.from[t], left), slots_max);
    if (!find_places(st, t, runs)) continue; // it stays left
    piece.left -= scheduler::length_of(runs);
    piece.from_table = m.pinned_table = t;
    piece.to_table = m.from[t].into[runs.front().first];
    piece.to = places_of(m.from[t], runs);
    piece.from = m.pinned = runs;
    st.pools[t].share(runs);
    st.holders[holder_of(pin_of_move, 0)] = {t, runs, st.epoch, 0};
  }
  return piece;
}

void note_copied(kv_allocator_state& st) {
  if (!st.moving) return;
  st.moving->from[st.moving->pinned_table].copied.insert(st.moving->pinned);
  st.moving->pinned.clear();
  release(st, holder_of(pin_of_move, 0));
}

void abort_move(kv_allocator_state& st) {
  if (st.moving) end_move(st);
}

void finish_move(kv_allocator_state& st) {
  if (!st.moving) return;
  release(st, holder_of(pin_of_move, 0));
  forget_freed(st);
  for (uint32_t t = 0; t < st.pools.size(); ++t) {
    // What of the cache was not copied, or has no slot there, is forgotten.
    auto& x = st.moving->from[t];
    scheduler::slot_set lost{st.pools[t].slots()};
    lost.insert(x.copied.part(std::vector<slot_run>{{0, lost.slots()}}, false));
    for (uint32_t slot = 0; slot < lost.slots(); ++slot)
      if (leaves(*st.moving, t, slot)) lost.insert(std::vector<slot_run>{{slot, 1}});
    st.prefixes[t].forget(st.pools[t], lost);
    // Slots that stay where they are have a place, written or not.
    for (uint32_t slot = 0; slot < x.slots.size(); ++slot)
      if (!leaves(*st.moving, t, slot)) x.slots[slot] = slot;
  }
  add_new_tables(st);
  for (auto& [holder, held] : st.holders)
    if (!is_of_move(holder) && !held.runs.empty()) rehome(st, held);
  for (const auto& [table, x] : st.moving->more) st.pools[table].give_back(x.places);
  std::erase_if(st.holders, [](const auto& x) { return x.second.runs.empty(); });
  // Copied rows have no parity yet: the epoch says so of all slots in use.
  for (uint32_t t = 0; t < st.pools.size(); ++t)
    st.unprotected[t] = scheduler::slot_set{st.pools[t].slots()};
  end_move(st);
}

void resize_tables(kv_allocator_state& st, const kv_tables& tables) {
  forget_parts(st.config, tables);
  st.config.tables = tables;
  const auto& list = tables.list;
  for (auto t = st.pools.size(); t < list.size(); ++t) {
    st.pools.emplace_back(0);
    st.prefixes.emplace_back();
  }
  for (auto t = st.pools.size(); t-- > 0;) {
    const auto slots = t < list.size() ? list[t].slots : 0;
    if (slots == 0) st.prefixes[t].clear(st.pools[t]);
    if (st.pools[t].slots() != slots) st.pools[t].resize(slots);
  }
  st.pools.resize(list.size(), scheduler::slot_pool{0});
  st.prefixes.resize(list.size());
  st.unprotected.resize(list.size());
  for (size_t t = 0; t < list.size(); ++t)
    if (st.unprotected[t].slots() != st.pools[t].slots())
      st.unprotected[t] = scheduler::slot_set{st.pools[t].slots()};
}

} // namespace lamella::actors
