/// The decode pipeline: every actor between a request and the devices, built and rebuilt as one.
#pragma once

#include "actors/node/pipeline_parts.hpp"
#include "actors/node/supervisor.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "scheduler/membership/pool_layout.hpp"

#include <caf/all.hpp>

#include <vector>

namespace lamella::actors {

struct pipeline {
  std::vector<caf::strong_actor_ptr> actors; ///< in the order of their start
  std::vector<child_facts> facts;            ///< of each
  service_ptr server;
  std::vector<caf::actor> parity_keepers; ///< one for each cell with parity
};

/// The settings with the pools at these sizes.
config::settings at_sizes(const config::settings& options, const pool_sizes& sizes);

/// What the sizes of the pools decide for their workers; `layout`: of the attention pool.
pool_terms pool_terms_of(const config::settings& options, const model::model_spec& spec,
                         scheduler::kv_layout layout);

/// Largest frame of a stream, in bytes: Q or K and V of its largest iteration.
uint64_t frame_bytes(const config::settings& options, const model::model_spec& spec,
                     uint32_t stream);

/// Largest frame between the replica and the shard of a prefill worker with KV of its own, in
/// bytes.
uint64_t own_frame_bytes(const config::settings& options, const model::model_spec& spec);

/// Largest frames where a cell has parity, in bytes: to the shard that holds it, and between its
/// members. 0 without.
uint64_t parity_frame_bytes(const config::settings& options, const model::model_spec& spec);
uint64_t member_frame_bytes(const config::settings& options, const model::model_spec& spec);

/// Largest frame of a stream between the ranks of a replica, in bytes: a partial sum, or Q or K and
/// V of a rank's heads.
uint64_t rank_frame_bytes(const config::settings& options, const model::model_spec& spec,
                          uint32_t stream);

/// Spawns allocator, parity keepers, scheduler, mask maker, batches, prefill workers, canary and,
/// where there are several slot tables, BALANCER over the replicas and shards of `parts.workers`.
/// An existing allocator is reused.
pipeline build_pipeline(caf::event_based_actor* parent, const pipeline_parts& parts);

} // namespace lamella::actors
