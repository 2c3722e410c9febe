/// The decode pipeline: every actor between a request and the devices, built and rebuilt as one.
#pragma once

#include "actors/health.hpp"
#include "actors/membership.hpp"
#include "actors/service.hpp"
#include "config/settings.hpp"
#include "gpu/host_engine.hpp"
#include "gpu/weights.hpp"
#include "model/load.hpp"

#include <caf/all.hpp>

#include <memory>
#include <vector>

namespace lamella::actors {

/// What outlives a rebuild: settings, model, packed weights (one copy per process), the engine.
struct pipeline_parts {
  config::settings options;
  std::shared_ptr<gpu::host_engine> engine;
  std::shared_ptr<const model::model_program> program;
  std::shared_ptr<const gpu::packed_weights> weights;
  uint32_t slots = 0; ///< per slot table
  service base;       ///< all but the handles and the epoch
  std::shared_ptr<health_board> health;
  std::shared_ptr<net::metrics> numbers;
};

struct pipeline {
  std::vector<caf::strong_actor_ptr> actors; ///< in the order of their start
  service_ptr server;
  membership_actor members;
};

/// Spawns executors, shards, allocator, replicas, scheduler, prefill workers, batches, membership
/// and canary, wired to each other. KV starts empty. Throws std::bad_alloc when the cache does not
/// fit.
pipeline build_pipeline(caf::event_based_actor* parent, const pipeline_parts& parts,
                        uint64_t epoch);

} // namespace lamella::actors
