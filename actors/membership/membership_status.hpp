/// Seats, workers and their parts, as `lamella status` shows them.
#pragma once

#include "actors/membership/membership_state.hpp"
#include "actors/protocol/traces.hpp"

namespace lamella::actors {

/// Polls the workers for their peers; the last report is used for workers that do not reply within
/// a second.
caf::result<system_status> answer_status(membership_self::stateful_pointer<membership_state> self);

/// Those that could be recorded: loaded ones, with their parts.
trace_workers workers_to_trace(const membership_state& st);

} // namespace lamella::actors
