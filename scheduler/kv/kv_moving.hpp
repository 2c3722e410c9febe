/// The ledger's side of a move: which slots are copied next, where they go, and what the tables
/// of the next epoch are.
///
/// A slot keeps its number where the next table has it. Others (of a smaller table, or of one that
/// goes) get a slot of their new table at the start of the move or when they are committed. Both,
/// and the slots that the next table has not, are reserved by holders that are no sequences, so
/// that nobody else gets them meanwhile.
#pragma once

#include "scheduler/kv/kv_ledger.hpp"
#include "scheduler/kv_move.hpp"

namespace lamella::scheduler {

/// Starts a move to tables of so many slots (0: the table goes), or goes on with one to the same
/// tables. `level`: sequences change tables that stay until all are about equally full. False when
/// there is no room for the slots that have to go elsewhere: then nothing has changed.
bool begin_move(kv_ledger& ledger, const std::vector<uint32_t>& slots, bool level);

/// The slots in use of each table, by the table that they go to. Cost: O(slots of all tables).
std::vector<kv_move_load> loads_of_move(const kv_ledger& ledger);

/// The next slots to copy, which stay pinned until the next call. Committed are the first `filled`
/// positions of a holder, and what the prefix cache has. Cost: O(slots of all tables).
kv_move_piece next_of_move(kv_ledger& ledger, uint32_t slots_max);

/// The pinned slots are copied, but for those that were freed meanwhile.
void note_copied(kv_ledger& ledger);

/// Gives back all that the move has reserved.
void abort_move(kv_ledger& ledger);

/// The next epoch takes over: holders and the prefix cache keep what was copied, with its slots
/// there. Ends the move.
void finish_move(kv_ledger& ledger);

/// Gives the pool the tables of an epoch. What does not fit must be free.
void resize_tables(kv_ledger& ledger, const kv_tables& tables);

} // namespace lamella::scheduler
