/// BALANCER: sees that the slot tables of an attention pool stay about equally full.
#pragma once

#include "actors/protocol/actors.hpp"
#include "scheduler/balance_watch.hpp"

#include <caf/all.hpp>

namespace lamella::actors {

struct balancer_config {
  uint64_t epoch = 0;
  kv_allocator_actor allocator;
  membership_actor members;
};

struct balancer_state {
  balancer_config config;
  scheduler::balance_watch watch;
  const char* name = "balancer";
};

using balancer_actor = caf::typed_actor<caf::reacts_to<caf::tick_atom>>;

/// Asks the allocator every second how full the tables are, and MEMBERSHIP for an epoch in which
/// sequences move where one table stays fuller than another (scheduler/balance_watch.hpp).
balancer_actor::behavior_type balancer(balancer_actor::stateful_pointer<balancer_state> self,
                                       balancer_config config);

} // namespace lamella::actors
