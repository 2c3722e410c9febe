#include "scheduler/kv/kv_move_tables.hpp"

#include "scheduler/kv_balance.hpp"

#include <algorithm>
#include <utility>

namespace lamella::scheduler {

namespace {

/// Groups, numbered as they were added, that become one where they meet.
class groups {
public:
  size_t add() {
    parents_.push_back(parents_.size());
    return parents_.back();
  }
  size_t count() const { return parents_.size(); }
  size_t root(size_t group) {
    while (parents_[group] != group) group = parents_[group] = parents_[parents_[group]];
    return group;
  }
  void unite(size_t a, size_t b) { parents_[root(b)] = root(a); }

private:
  std::vector<size_t> parents_;
};

/// The slots of sequences of a table, together where they share some: the prefix cache may have
/// given a sequence slots of several others, of which each has the beginning for itself.
std::vector<std::vector<slot_run>> sharers_of(const kv_ledger& ledger, uint32_t table) {
  if (ledger.pools[table].slots() == 0) return {}; // a number between those of tables
  constexpr auto none = ~size_t{0};
  groups all;
  std::vector<size_t> group(ledger.pools[table].slots(), none);
  for (const auto& [holder, held] : ledger.holders) {
    if (held.member != table || is_of_move(holder) || held.runs.empty()) continue;
    const auto mine = all.add();
    for (const auto& run : held.runs)
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (const auto other = std::exchange(group[slot], mine); other != none)
          all.unite(mine, other);
  }
  std::vector<std::vector<slot_run>> result(all.count()); // by group; most were united with others
  for (uint32_t slot = 0; slot < group.size(); ++slot) {
    const slot_run one{slot, 1};
    if (group[slot] != none) append(result[all.root(group[slot])], {&one, 1});
  }
  std::erase_if(result, [](const auto& runs) { return runs.empty(); });
  return result;
}

/// Whether only the next epoch has slots in that table.
bool is_new(const kv_ledger& ledger, uint32_t table) {
  return ledger.moving->slots_of(table) > 0
         && (table >= ledger.pools.size() || ledger.pools[table].slots() == 0);
}

/// How many slots of each table of the next epoch there are during the move.
std::vector<uint32_t> room_of(const kv_ledger& ledger) {
  auto room = ledger.moving->slots;
  for (uint32_t t = 0; t < room.size(); ++t)
    if (room[t] > 0 && !is_new(ledger, t)) room[t] = std::min(room[t], ledger.pools[t].slots());
  return room;
}

/// The sequences of all tables, in groups that stay together.
struct all_groups {
  std::vector<kv_group> list;
  std::vector<std::vector<slot_run>> slots; ///< of each
};

all_groups groups_of(const kv_ledger& ledger) {
  all_groups x;
  for (uint32_t t = 0; t < ledger.pools.size(); ++t)
    for (auto& runs : sharers_of(ledger, t)) {
      x.list.push_back({t, length_of(runs)});
      x.slots.push_back(std::move(runs));
    }
  return x;
}

/// The table of each sequence in the next epoch.
void spread_sequences(kv_ledger& ledger) {
  auto& m = *ledger.moving;
  const auto groups = groups_of(ledger);
  const auto to = balanced(groups.list, room_of(ledger), m.level || !m.more.empty());
  for (size_t i = 0; i < groups.list.size(); ++i)
    for (const auto& run : groups.slots[i])
      std::fill_n(m.from[groups.list[i].table].into.begin() + run.first, run.length, to[i]);
}

} // namespace

bool is_of_move(sequence_id holder) {
  const auto request = request_of(holder);
  return request == places_of_move || request == behind_of_move || request == pin_of_move;
}

kv_balance balance_of(const kv_ledger& ledger) {
  kv_loads x;
  for (const auto& pool : ledger.pools) {
    x.slots.push_back(pool.slots());
    x.used.push_back(pool.used() - pool.cached());
  }
  kv_balance result;
  result.now = result.after = spread_of(x);
  if (ledger.moving || result.now <= balance_tolerance) return result;
  const auto groups = groups_of(ledger);
  const auto to = balanced(groups.list, x.slots);
  for (size_t i = 0; i < to.size(); ++i) {
    x.used[groups.list[i].table] -=
        std::min<uint64_t>(x.used[groups.list[i].table], groups.list[i].slots);
    x.used[to[i]] += groups.list[i].slots;
  }
  result.after = spread_of(x);
  return result;
}

void choose_tables(kv_ledger& ledger) {
  auto& m = *ledger.moving;
  kv_loads now{m.slots, std::vector<uint64_t>(m.slots.size())};
  for (uint32_t t = 0; t < std::min(m.slots.size(), ledger.pools.size()); ++t)
    now.used[t] = ledger.pools[t].used();
  const auto emptiest = emptiest_for(now, 0);
  m.from.resize(ledger.pools.size());
  for (uint32_t t = 0; t < ledger.pools.size(); ++t) {
    auto& x = m.from[t];
    x.to = m.slots_of(t) > 0 ? t : emptiest;
    x.slots.assign(ledger.pools[t].slots(), kv_moving::nowhere);
    x.copied = slot_set{ledger.pools[t].slots()};
    x.into.assign(ledger.pools[t].slots(), x.to);
  }
  for (uint32_t t = 0; t < m.slots.size(); ++t)
    if (is_new(ledger, t)) m.more.try_emplace(t, kv_moving::new_table{slot_pool{m.slots[t]}, {}});
  spread_sequences(ledger);
}

void follow_first_slots(kv_ledger& ledger) {
  std::vector<slot_set> followed;
  for (const auto& x : ledger.moving->from)
    followed.emplace_back(static_cast<uint32_t>(x.into.size()));
  for (const auto& [holder, held] : ledger.holders) {
    if (is_of_move(holder) || held.runs.empty() || held.member >= ledger.moving->from.size())
      continue;
    auto& x = ledger.moving->from[held.member];
    auto& done = followed[held.member];
    const auto to = x.into[held.runs.front().first];
    // What elder sequences share with this one follows those.
    for (const auto& run : done.part(held.runs, false))
      for (auto slot = run.first; slot < run.first + run.length; ++slot)
        if (x.slots[slot] == kv_moving::nowhere) x.into[slot] = to;
    done.insert(held.runs);
  }
}

std::vector<slot_run> to_one_table(const kv_moving::table& x, const std::vector<slot_run>& runs) {
  std::vector<slot_run> result;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      if (x.into[slot] == x.into[runs.front().first])
        append(result, std::vector<slot_run>{{slot, 1}});
  return result;
}

} // namespace lamella::scheduler
