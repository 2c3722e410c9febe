/// Failure detection by heartbeat probes: MEMBERSHIP probes a worker twice (reliability A1).
#pragma once

#include "actors/membership/membership_state.hpp"

#include <functional>
#include <string>

namespace lamella::actors {

/// Probes every worker process with a part in the open epoch, and calls `give_up` for those that
/// miss two replies. A worker has at most one probe in flight. While an epoch is being opened no
/// worker is probed: its messages have a timeout of their own.
void probe_workers(
    membership_self::stateful_pointer<membership_state> self,
    const std::function<void(const scheduler::seat&, const std::string& reason)>& give_up);

/// A process has finished loading. True if it was declared dead for its silence before: a false
/// positive, which is counted.
bool note_return(membership_self::stateful_pointer<membership_state> self,
                 const membership_state::member& m);

} // namespace lamella::actors
