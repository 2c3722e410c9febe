/// Detection of slow workers (gray failures): MEMBERSHIP polls the work of their devices.
#pragma once

#include "actors/membership/membership_state.hpp"
#include "actors/protocol/status.hpp"

namespace lamella::actors {

/// A worker has replied to a poll.
void note_report(membership_self::stateful_pointer<membership_state> self,
                 const membership_state::member& m, const worker_peers& x);

/// Polls all workers. When each has replied or timed out, `tell` gets those that became slow or
/// recovered since the last poll.
void look_at_pace(membership_self::stateful_pointer<membership_state> self,
                  std::function<void(const scheduler::slow_workers::change&)> tell);

/// Whether a worker that is not slow could take the part of that seat at once, without recomputing
/// KV.
bool has_substitute(const membership_state& st, const scheduler::seat& who);

/// The plan of the next epoch from the ready workers; slow ones only where needed.
std::optional<scheduler::epoch_plan> next_plan(const membership_state& st);

} // namespace lamella::actors
