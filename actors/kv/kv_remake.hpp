/// The rows of one member of a pool with parity, made of those of all others (decision 23;
/// reliability A6).
#pragma once

#include "actors/protocol/actors.hpp"
#include "net/metrics/metrics.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

struct kv_remake {
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> members; ///< the one with the parity last
  uint32_t target = 0;
  std::vector<slot_run> runs;
  uint64_t number = 1; ///< grows from one to the next of a target and epoch
  caf::timespan patience{};
  std::shared_ptr<net::metrics> numbers; ///< may be null
};

/// Why rows could not be made.
struct remake_failure {
  std::string reason;
  bool differs = false; ///< both sides have done their part, and it is not the same
};

/// Member after member lends its rows, because they add to the same slots: the first one's replace
/// what is there. Calls `done` once, on the thread of `self`, with the reason if it has failed; the
/// target's rows are then worth nothing. Moves (members - 1) * KV of the runs at a member.
void remake(caf::event_based_actor* self, kv_remake what,
            std::function<void(const std::optional<remake_failure>& failure)> done);

} // namespace lamella::actors
