/// Detection of slow workers (gray failures): MEMBERSHIP polls the work of their devices.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <chrono>

namespace lamella::actors {

/// For the reply of a worker to a poll or an order.
constexpr caf::timespan worker_answer_limit = std::chrono::seconds{1};

/// A worker has replied to a poll.
void note_report(membership_self::stateful_pointer<membership_state> self,
                 const membership_state::member& m, const worker_peers& x);

/// Polls all workers. When each has replied or timed out, `tell` gets those that became slow or
/// recovered since the last poll.
void look_at_pace(membership_self::stateful_pointer<membership_state> self,
                  std::function<void(const scheduler::slow_workers::change&)> tell);

} // namespace lamella::actors
