#include "actors/kv/kv_move_tables.hpp"

#include "scheduler/kv_balance.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

/// The slots of sequences of a table, together where they share some.
std::vector<std::vector<slot_run>> sharers_of(const kv_allocator_state& st, uint32_t table) {
  constexpr auto none = ~size_t{0};
  std::vector<std::vector<slot_run>> result;
  std::vector<size_t> group(st.pools[table].slots(), none);
  for (const auto& [holder, held] : st.holders) {
    if (held.member != table || is_of_move(holder) || held.runs.empty()) continue;
    // Prefixes are shared, so the first slot tells.
    auto mine = group[held.runs.front().first];
    if (mine == none) {
      mine = result.size();
      result.emplace_back();
    }
    for (const auto& run : held.runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (std::exchange(group[slot], mine) == none)
          scheduler::append(result[mine], std::vector<slot_run>{{slot, 1}});
  }
  return result;
}

/// A pool of members that hold whole requests gets more of them: some sequences go there.
void fill_new_tables(kv_allocator_state& st) {
  auto& m = *st.moving;
  if (!st.config.whole_requests || m.tables <= st.pools.size()) return;
  for (auto t = st.pools.size(); t < m.tables; ++t)
    m.more.push_back({scheduler::slot_pool{m.slots}, {}});
  std::vector<scheduler::kv_group> groups;
  std::vector<std::vector<slot_run>> slots;
  for (uint32_t t = 0; t < st.pools.size(); ++t)
    for (auto& runs : sharers_of(st, t)) {
      groups.push_back({t, scheduler::length_of(runs)});
      slots.push_back(std::move(runs));
    }
  const auto to = scheduler::balanced(groups, m.tables, m.slots);
  for (size_t i = 0; i < groups.size(); ++i)
    for (const auto& run : slots[i])
      std::fill_n(m.from[groups[i].table].into.begin() + run.first, run.length, to[i]);
}

} // namespace

bool is_of_move(sequence_id holder) {
  const auto request = scheduler::request_of(holder);
  return request == places_of_move || request == behind_of_move || request == pin_of_move;
}

void choose_tables(kv_allocator_state& st) {
  auto& m = *st.moving;
  std::vector<uint64_t> room(m.tables);
  for (uint32_t t = 0; t < std::min<size_t>(m.tables, st.pools.size()); ++t)
    room[t] = st.pools[t].free();
  m.from.resize(st.pools.size());
  for (uint32_t t = 0; t < st.pools.size(); ++t) {
    auto& x = m.from[t];
    x.to = t;
    x.slots.assign(st.pools[t].slots(), kv_moving::nowhere);
    x.copied = scheduler::slot_set{st.pools[t].slots()};
    if (t >= m.tables) {
      const auto best = std::ranges::max_element(room);
      x.to = static_cast<uint32_t>(best - room.begin());
      *best -= std::min<uint64_t>(*best, st.pools[t].used());
    }
    x.into.assign(st.pools[t].slots(), x.to);
  }
  fill_new_tables(st);
}

void follow_first_slots(kv_allocator_state& st) {
  for (const auto& [holder, held] : st.holders) {
    if (is_of_move(holder) || held.runs.empty() || held.member >= st.moving->from.size()) continue;
    auto& x = st.moving->from[held.member];
    const auto to = x.into[held.runs.front().first];
    for (const auto& run : held.runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (x.slots[slot] == kv_moving::nowhere) x.into[slot] = to;
  }
}

std::vector<slot_run> to_one_table(const kv_moving::table& x, const std::vector<slot_run>& runs) {
  std::vector<slot_run> result;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      if (x.into[slot] == x.into[runs.front().first])
        scheduler::append(result, std::vector<slot_run>{{slot, 1}});
  return result;
}

} // namespace lamella::actors
