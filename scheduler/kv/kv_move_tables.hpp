/// Where the slots of each table go in a move.
#pragma once

#include "scheduler/kv/kv_ledger.hpp"

namespace lamella::scheduler {

/// Holders that are no sequences: no request gets these numbers.
constexpr uint64_t last_request = (uint64_t{1} << 47) - 1;
constexpr auto places_of_move = request_id{last_request - 2}; ///< new places, by table
constexpr auto behind_of_move = request_id{last_request - 3}; ///< slots that go, by table
constexpr auto pin_of_move = request_id{last_request - 4};

/// Whether a holder is none: its slots are reserved for a move, or pinned by one.
bool is_of_move(sequence_id holder);

/// Slots of a table that have to change their number or their table.
inline bool leaves(const kv_moving& m, uint32_t table, uint32_t slot) {
  return slot >= m.slots_of(table) || m.from[table].into[slot] != table;
}

/// Begins: sequences of tables that go are spread over the others, and where tables are new some
/// sequences go there, until all are about equally full (scheduler/kv_balance.hpp). Cost: O(slots).
void choose_tables(kv_ledger& ledger);

/// How unequally full the tables are, and how much of that levelling them would leave. Cost: O(1)
/// where it is little, else O(slots + sequences^2).
kv_balance balance_of(const kv_ledger& ledger);

/// What a sequence got since then goes where its first slot goes; slots that it shares with elder
/// sequences go with those. Cost: O(slots of the tables).
void follow_first_slots(kv_ledger& ledger);

/// Of some slots, those that go to the same table as the first of them.
std::vector<slot_run> to_one_table(const kv_moving::table& x, const std::vector<slot_run>& runs);

} // namespace lamella::scheduler
