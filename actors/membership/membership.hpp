/// MEMBERSHIP: the seats and their workers; writes the epochs (decision 21).
#pragma once

#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

/// A worker takes a seat (`seat_ask`), loads, and reports its properties (`worker_facts`); a worker
/// that differs from `wanted` is rejected. The first epoch is opened when no worker is missing and
/// the supervisor has asked; spares are not waited for. The loss of a worker with a part closes the
/// epoch and is reported to the supervisor, which asks again: the next epoch is opened as soon as
/// it could decode, with fewer replicas if need be, and again when those are back. A worker without
/// heartbeats is declared dead (`scheduler/membership/probe_timeout`), as is one whose connection
/// closes. A slow worker (`scheduler/membership/slow_workers`) is reported; if another worker can
/// take its part at once and without recomputation, the slow one loses it and rejoins as the last
/// choice among spares. A worker gets a part when all peers reach it over the data plane, and is
/// fenced when they do not (`membership_reach.hpp`).
membership_self::behavior_type membership(membership_self::stateful_pointer<membership_state> self,
                                          membership_config config);

} // namespace lamella::actors
