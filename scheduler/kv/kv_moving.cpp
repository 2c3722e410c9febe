#include "scheduler/kv/kv_moving.hpp"

#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_move_tables.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace lamella::scheduler {

namespace {

sequence_id holder_of(request_id what, uint32_t table) { return sequence_of(what, table); }

/// Adds slots to what a holder that is none has in a table.
void hold(kv_ledger& ledger, request_id what, uint32_t table, const std::vector<slot_run>& runs) {
  if (runs.empty()) return;
  auto& held = ledger.holders[holder_of(what, table)];
  held.member = table;
  held.epoch = ledger.epoch;
  append(held.runs, runs);
}

/// The slots of a table of the next epoch.
slot_pool& pool_of(kv_ledger& ledger, uint32_t table) {
  const auto found = ledger.moving->more.find(table);
  return found == ledger.moving->more.end() ? ledger.pools[table] : found->second.pool;
}

/// Notes that slots of a table of the next epoch are places of a move.
void hold_places(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs) {
  const auto found = ledger.moving->more.find(table);
  if (found == ledger.moving->more.end()) return hold(ledger, places_of_move, table, runs);
  append(found->second.places, runs);
}

/// Gives such slots back.
void give_back_places(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs) {
  const auto found = ledger.moving->more.find(table);
  auto& held = found == ledger.moving->more.end()
                   ? ledger.holders.at(holder_of(places_of_move, table)).runs
                   : found->second.places;
  slot_set gone{pool_of(ledger, table).slots()};
  gone.insert(runs);
  held = gone.part(held, false);
  pool_of(ledger, table).give_back(runs);
}

/// Free slots that the next table has not are given to nobody.
void withhold(kv_ledger& ledger) {
  const auto& m = *ledger.moving;
  for (uint32_t t = 0; t < ledger.pools.size(); ++t)
    if (const auto slots = m.slots_of(t); slots > 0 && ledger.pools[t].slots() > slots)
      hold(ledger, behind_of_move, t, ledger.pools[t].take_from(slots));
}

/// The places of these slots; those without one get one, if there is room. False: there is none.
bool find_places(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs) {
  auto& x = ledger.moving->from[table];
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot) {
      auto& place = x.slots[slot];
      if (place != kv_moving::nowhere) continue;
      if (!leaves(*ledger.moving, table, slot)) {
        place = slot;
        continue;
      }
      const auto to = x.into[slot];
      auto& pool = pool_of(ledger, to);
      if (pool.free() == 0 && !ledger.moving->more.contains(to))
        ledger.prefixes[to].make_room(pool, 1);
      const auto after = slot > 0 ? x.slots[slot - 1] : kv_moving::nowhere;
      const auto taken =
          pool.take(1, after == kv_moving::nowhere ? std::nullopt : std::optional{after + 1});
      if (!taken) return false;
      if (taken->front().first >= ledger.moving->slots_of(to)) { // of a table that is larger now
        hold(ledger, behind_of_move, to, *taken);
        withhold(ledger);
        return find_places(ledger, table, runs);
      }
      hold_places(ledger, to, *taken);
      place = taken->front().first;
    }
  return true;
}

/// Slots whose content has changed since they were looked at: their copies count no more, and
/// nobody needs their places.
void forget_freed(kv_ledger& ledger) {
  for (uint32_t t = 0; t < ledger.moving->from.size(); ++t) {
    auto& x = ledger.moving->from[t];
    const auto freed = ledger.pools[t].take_freed();
    x.copied.erase(freed);
    for (const auto& run : freed)
      for (auto slot = run.first; slot < run.first + run.length; ++slot) {
        const auto place = std::exchange(x.slots[slot], kv_moving::nowhere);
        const bool left = leaves(*ledger.moving, t, slot);
        const auto to = std::exchange(x.into[slot], x.to);
        if (place != kv_moving::nowhere && left) give_back_places(ledger, to, {{place, 1}});
      }
  }
  follow_first_slots(ledger);
  withhold(ledger);
}

/// Committed slots of a table that were not copied. Slots that only the prefix cache has are left
/// out where they would have to change their place: the move forgets these.
std::vector<slot_run> left_of(const kv_ledger& ledger, uint32_t table) {
  if (ledger.pools[table].slots() == 0) return {}; // a number between those of tables
  slot_set left{ledger.pools[table].slots()};
  std::vector<slot_run> stays;
  for (const auto& run : ledger.pools[table].cached_runs())
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      if (const slot_run one{slot, 1}; !leaves(*ledger.moving, table, slot))
        append(stays, {&one, 1});
  left.insert(stays);
  for (const auto& [holder, held] : ledger.holders)
    if (held.member == table && !is_of_move(holder) && !ledger.pinned_by.contains(holder))
      left.insert(prefix(held.runs, held.filled));
  left.erase(
      ledger.moving->from[table].copied.part(std::vector<slot_run>{{0, left.slots()}}, true));
  return left.part(std::vector<slot_run>{{0, left.slots()}}, true);
}

/// Runs in ascending order, from that slot on and then from the first one on.
std::vector<slot_run> from_slot(const std::vector<slot_run>& runs, uint32_t slot) {
  std::vector<slot_run> result, before;
  for (const auto& run : runs) {
    const auto end = run.first + run.length, cut = std::clamp(slot, run.first, end);
    if (cut > run.first) before.push_back({run.first, cut - run.first});
    if (cut < end) result.push_back({cut, end - cut});
  }
  append(result, before);
  return result;
}

std::vector<slot_run> places_of(const kv_moving::table& x, const std::vector<slot_run>& runs) {
  std::vector<slot_run> places;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      append(places, std::vector<slot_run>{{x.slots[slot], 1}});
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
void rehome(kv_ledger& ledger, kv_ledger::holding& held) {
  const auto& x = ledger.moving->from[held.member];
  const auto to = x.into[held.runs.front().first];
  // Slots that nothing was written to yet have no place where others had to go.
  const auto stays = prefix(held.runs, placed(x, held.runs, to));
  held.taken_over = copied(x, prefix(stays, held.filled));
  held.filled = *held.taken_over;
  auto runs = places_of(x, stays);
  ledger.pools[to].share(runs);
  ledger.pools[held.member].give_back(held.runs);
  held.runs = std::move(runs);
  held.member = to;
}

/// The tables that only the next epoch has become those of the pool.
void add_new_tables(kv_ledger& ledger) {
  for (auto& [table, x] : ledger.moving->more) {
    for (auto t = ledger.pools.size(); t <= table; ++t) {
      ledger.pools.emplace_back(0);
      ledger.prefixes.emplace_back();
    }
    ledger.pools[table] = std::move(x.pool);
    ledger.unprotected.resize(ledger.pools.size());
    ledger.unprotected[table] = slot_set{ledger.pools[table].slots()};
  }
}

void end_move(kv_ledger& ledger) {
  std::vector<sequence_id> over;
  for (const auto& [holder, held] : ledger.holders)
    if (is_of_move(holder)) over.push_back(holder);
  for (const auto holder : over) release(ledger, holder);
  for (auto& pool : ledger.pools) pool.watch_freed(false);
  ledger.moving.reset();
}

/// Whether each table of the next epoch has room for what has to go there, if the prefix cache
/// gives up all that it has there. Asked first, so that nothing is evicted for a move that has no
/// room.
bool has_room(const kv_ledger& ledger) {
  const auto& m = *ledger.moving;
  std::map<uint32_t, uint64_t> goes; // by table
  for (uint32_t t = 0; t < ledger.pools.size(); ++t)
    for (const auto& run : left_of(ledger, t))
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (leaves(m, t, slot) && m.from[t].slots[slot] == kv_moving::nowhere)
          ++goes[m.from[t].into[slot]];
  return std::ranges::all_of(goes, [&](const auto& x) {
    const auto more = m.more.find(x.first);
    if (more != m.more.end()) return x.second <= more->second.pool.free();
    const auto& pool = ledger.pools[x.first];
    uint64_t room = pool.free();
    for (const auto& run : pool.cached_runs())
      if (run.first < m.slots_of(x.first))
        room += std::min(run.length, m.slots_of(x.first) - run.first);
    return x.second <= room;
  });
}

/// What only the prefix cache has, and has no place in the next tables.
void forget_leaving(kv_ledger& ledger) {
  for (uint32_t t = 0; t < ledger.pools.size(); ++t) {
    slot_set goes{ledger.pools[t].slots()};
    for (uint32_t slot = 0; slot < goes.slots(); ++slot)
      if (leaves(*ledger.moving, t, slot)) goes.insert(std::vector<slot_run>{{slot, 1}});
    ledger.prefixes[t].forget(ledger.pools[t], goes);
  }
  forget_freed(ledger);
}

} // namespace

bool begin_move(kv_ledger& ledger, const std::vector<uint32_t>& slots, bool level) {
  bool begins = false;
  if (!ledger.moving || ledger.moving->slots != slots || ledger.moving->level != level) {
    if (ledger.moving) end_move(ledger);
    begins = true;
    ledger.moving.emplace();
    ledger.moving->slots = slots;
    ledger.moving->level = level;
    choose_tables(ledger);
    for (auto& pool : ledger.pools) pool.watch_freed(true);
  }
  forget_freed(ledger);
  bool found = has_room(ledger);
  for (uint32_t t = 0; found && t < ledger.pools.size(); ++t)
    found = find_places(ledger, t, left_of(ledger, t));
  if (!found)
    end_move(ledger);
  else if (begins)
    forget_leaving(ledger);
  return found;
}

std::vector<kv_move_load> loads_of_move(const kv_ledger& ledger) {
  std::vector<kv_move_load> loads;
  if (!ledger.moving) return loads;
  for (uint32_t t = 0; t < ledger.moving->from.size(); ++t) {
    std::map<uint32_t, uint32_t> into;
    for (const auto& run : ledger.pools[t].used_runs())
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        ++into[ledger.moving->from[t].into[slot]];
    for (const auto& [to, slots] : into) loads.push_back({t, to, slots});
  }
  return loads;
}

kv_move_piece next_of_move(kv_ledger& ledger, uint32_t slots_max) {
  kv_move_piece piece;
  if (!ledger.moving) return piece;
  auto& m = *ledger.moving;
  release(ledger, holder_of(pin_of_move, 0));
  m.pinned.clear();
  forget_freed(ledger);
  // Tables take turns, and so do the slots of each: those that are decoded meanwhile come again and
  // again, and the others would wait for them.
  const auto tables = static_cast<uint32_t>(ledger.pools.size());
  const auto first = m.pinned_table + 1;
  for (uint32_t i = 0; i < tables; ++i) {
    const auto t = (first + i) % tables;
    const auto left = left_of(ledger, t);
    const auto count = length_of(left);
    piece.left += count;
    if (!piece.from.empty() || count == 0) continue;
    const auto runs =
        prefix(to_one_table(m.from[t], from_slot(left, m.from[t].behind_last)), slots_max);
    if (!find_places(ledger, t, runs)) continue; // it stays left
    piece.left -= length_of(runs);
    piece.from_table = m.pinned_table = t;
    m.from[t].behind_last = runs.back().first + runs.back().length;
    piece.to_table = m.from[t].into[runs.front().first];
    piece.to = places_of(m.from[t], runs);
    piece.from = m.pinned = runs;
    ledger.pools[t].share(runs);
    ledger.holders[holder_of(pin_of_move, 0)] = {t, runs, ledger.epoch, 0};
  }
  return piece;
}

void note_copied(kv_ledger& ledger) {
  if (!ledger.moving) return;
  ledger.moving->from[ledger.moving->pinned_table].copied.insert(ledger.moving->pinned);
  ledger.moving->pinned.clear();
  release(ledger, holder_of(pin_of_move, 0));
}

void abort_move(kv_ledger& ledger) {
  if (ledger.moving) end_move(ledger);
}

void finish_move(kv_ledger& ledger) {
  if (!ledger.moving) return;
  release(ledger, holder_of(pin_of_move, 0));
  forget_freed(ledger);
  for (uint32_t t = 0; t < ledger.pools.size(); ++t) {
    // What of the cache was not copied, or has no slot there, is forgotten.
    auto& x = ledger.moving->from[t];
    slot_set lost{ledger.pools[t].slots()};
    lost.insert(x.copied.part(std::vector<slot_run>{{0, lost.slots()}}, false));
    for (uint32_t slot = 0; slot < lost.slots(); ++slot)
      if (leaves(*ledger.moving, t, slot)) lost.insert(std::vector<slot_run>{{slot, 1}});
    ledger.prefixes[t].forget(ledger.pools[t], lost);
    // Slots that stay where they are have a place, written or not.
    for (uint32_t slot = 0; slot < x.slots.size(); ++slot)
      if (!leaves(*ledger.moving, t, slot)) x.slots[slot] = slot;
  }
  add_new_tables(ledger);
  for (auto& [holder, held] : ledger.holders)
    if (!is_of_move(holder) && !held.runs.empty()) rehome(ledger, held);
  for (const auto& [table, x] : ledger.moving->more) ledger.pools[table].give_back(x.places);
  std::erase_if(ledger.holders, [](const auto& x) { return x.second.runs.empty(); });
  // Copied rows have no parity yet: the epoch says so of all slots in use.
  for (uint32_t t = 0; t < ledger.pools.size(); ++t)
    ledger.unprotected[t] = slot_set{ledger.pools[t].slots()};
  end_move(ledger);
}

void resize_tables(kv_ledger& ledger, const kv_tables& tables) {
  ledger.tables = tables;
  const auto& list = tables.list;
  for (auto t = ledger.pools.size(); t < list.size(); ++t) {
    ledger.pools.emplace_back(0);
    ledger.prefixes.emplace_back();
  }
  for (auto t = ledger.pools.size(); t-- > 0;) {
    const auto slots = t < list.size() ? list[t].slots : 0;
    if (slots == 0) ledger.prefixes[t].clear(ledger.pools[t]);
    if (ledger.pools[t].slots() != slots) ledger.pools[t].resize(slots);
  }
  ledger.pools.resize(list.size(), slot_pool{0});
  ledger.prefixes.resize(list.size());
  ledger.unprotected.resize(list.size());
  for (size_t t = 0; t < list.size(); ++t)
    if (ledger.unprotected[t].slots() != ledger.pools[t].slots())
      ledger.unprotected[t] = slot_set{ledger.pools[t].slots()};
}

} // namespace lamella::scheduler
