/// Which epoch comes next: the decisions of MEMBERSHIP, from the workers it has.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <optional>
#include <set>

namespace lamella::actors {

/// The seats of an epoch, and the sizes of the pools it has them for.
struct next_epoch {
  epoch_design design;
  scheduler::epoch_plan plan;
};

/// The epoch to open when none serves: at the sizes in force, where the KV is; where those are
/// impossible, at the wanted ones. `fewer`: then with as many shards as are left, each with the
/// memory it had (reliability A2); KV is computed again. Slow workers have a part only where
/// needed. Nothing: wait.
std::optional<next_epoch> next_plan(const membership_state& st, bool fewer);

/// An epoch that is better than the one that serves: it has the wanted sizes of the pools, all of
/// their members, or more members than now, or a draining seat has lost its part, or its batches
/// run otherwise. Nothing: there is none.
std::optional<next_epoch> better_plan(const membership_state& st);

/// Whether no epoch can be opened: no worker that may still come has the parts that are lacking,
/// and the attention pool cannot do with the shards that are left.
bool is_hopeless(const membership_state& st);

/// Seats whose processes keep crashing: they are not waited for.
std::set<scheduler::seat> failing_seats(const membership_state& st);

/// Whether an epoch has work for that seat: shards, parity and replicas have a part.
bool has_part(const scheduler::epoch_plan& plan, const scheduler::seat& where);

/// Whether KV of the epoch that serves has to be copied before that one can replace it: a shard has
/// another part or another seat than now.
bool moves_kv(const membership_state& st, const membership_state::numbered_plan& next);

/// What that shard of an epoch stores.
scheduler::kv_part part_of_shard(const membership_state& st, const epoch_design& design,
                                 uint32_t number);

/// Whether a worker that is not slow could take the part of that seat at once, without recomputing
/// KV.
bool has_substitute(const membership_state& st, const scheduler::seat& who);

/// The parity of a cell is complete in that epoch.
void note_whole_parity(membership_state& st, uint64_t epoch, uint32_t cell);

} // namespace lamella::actors
