/// The configuration and the state of the KV ALLOCATOR, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/kv/kv_ledger.hpp"

#include <memory>
#include <vector>

namespace lamella::actors {

struct kv_allocator_config {
  std::string pool = "main"; ///< its name in metrics
  kv_tables tables;          ///< of the epoch
  /// How long unused KV stays in the prefix cache; 0 disables it.
  caf::timespan prefix_time{0};
  uint32_t prefix_least_percent = 0; ///< minimum share of a prompt for a prefix-cache hit
  /// How long the KV of an earlier epoch is kept for its holders.
  caf::timespan timeout{std::chrono::seconds{5}};
  std::shared_ptr<net::metrics> metrics; ///< may be null
};

struct kv_allocator_state {
  kv_allocator_config config;
  scheduler::kv_ledger ledger;
  std::vector<attention_shard_actor> shards; ///< of the epoch
  bool looking = false;                      ///< an expiry check is scheduled
  std::vector<kv_waiter_actor> waiters;      ///< get kv_freed when slots are freed
  uint64_t wanted = 0;                       ///< as in kv_usage
  /// Memory that an empty pool gives back to the system.
  struct trimming_part {
    bool done = true;     ///< no slot was used since memory was given back
    uint64_t ticket = 0;  ///< of the newest delayed trim
    uint32_t waiting = 0; ///< shards that have not answered
    uint64_t round = 0;   ///< the newest that was begun or given up
  } trimming;
  struct late_question {
    kv_reserve question;
    caf::strong_actor_ptr asker;
    caf::typed_response_promise<kv_grant> promise;
  };
  std::vector<late_question> waiting_for_trim;
  const char* name = "kv_allocator";
};

using kv_allocator_ptr = kv_allocator_actor::stateful_pointer<kv_allocator_state>;

inline std::chrono::nanoseconds now(kv_allocator_ptr self) {
  return self->clock().now().time_since_epoch();
}

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::kv_allocator_config)
