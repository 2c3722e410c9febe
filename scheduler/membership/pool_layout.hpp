/// The sizes of the pools, as data: they change while a service runs.
#pragma once

#include "scheduler/head_partition.hpp"
#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/seats.hpp"

#include <cstdint>

namespace lamella::scheduler {

/// Members of each pool, without spares and without the member that holds the parity.
struct pool_sizes {
  uint32_t model = 1;
  uint32_t attention = 1;
  uint32_t prefill = 0; ///< seats of their own; 0: prompts run on the model replicas
  friend bool operator==(const pool_sizes&, const pool_sizes&) = default;
};

constexpr uint32_t size_of(const pool_sizes& x, worker_role role) {
  return role == worker_role::model       ? x.model
         : role == worker_role::attention ? x.attention
                                          : x.prefill;
}

/// The same sizes, but for one pool.
constexpr pool_sizes with_size(pool_sizes x, worker_role role, uint32_t members) {
  (role == worker_role::model       ? x.model
   : role == worker_role::attention ? x.attention
                                    : x.prefill) = members;
  return x;
}

constexpr pool_sizes sizes_of(const epoch_shape& x) {
  return {x.replicas, x.shards, x.prefill_seats};
}

/// What a member of an attention pool stores: a cache belongs to one of these, and serves no other.
struct kv_part {
  uint32_t first_head = 0, heads = 0;
  uint32_t table = 0; ///< request partition: the member's own slot table
  uint32_t slots = 0;
  bool parity = false; ///< of the other members' heads
  friend auto operator<=>(const kv_part&, const kv_part&) = default;
};

/// The part of member `number` of `shards`; number `shards` holds the parity.
constexpr kv_part part_of_member(uint32_t kv_heads, uint32_t shards, uint32_t number,
                                 bool whole_requests, uint32_t slots) {
  if (whole_requests) return {0, kv_heads, number, slots};
  if (number == shards) return {0, kv_heads / shards, 0, slots, true};
  const auto heads = heads_of(kv_heads, shards, number);
  return {heads.first, heads.count, 0, slots};
}

} // namespace lamella::scheduler
