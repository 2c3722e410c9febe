/// What pipelines are built of and outlives them.
#pragma once

#include "actors/machine/devices.hpp"
#include "actors/node/shared_settings.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/request/service.hpp"
#include "actors/shared/digest_book.hpp"
#include "actors/shared/first_iterations.hpp"
#include "actors/shared/health.hpp"
#include "actors/shared/suspect_board.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/runners/weights.hpp"
#include "model/program/load.hpp"
#include "scheduler/parity_ledger.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::actors {

/// The allocator, which outlives pipelines: it has the location of the KV.
struct kept_allocator {
  kv_allocator_actor handle;
  std::shared_ptr<std::atomic<bool>> lives = std::make_shared<std::atomic<bool>>(false);
};

/// State that outlives a rebuild: settings, model, packed weights (one copy per process), the
/// engine.
struct pipeline_parts {
  shared_settings options;
  std::shared_ptr<gpu::host_engine> engine;
  std::shared_ptr<device_set> devices; ///< of the engine, and CUDA devices
  std::shared_ptr<const model::model_program> program;
  std::shared_ptr<const gpu::packed_weights> weights; ///< of a replica's rank 0
  /// Of ranks 1, 2, ...; none where a replica is one device.
  std::vector<std::shared_ptr<const gpu::packed_weights>> other_weights{};
  scheduler::kv_layout layout; ///< of the attention pool at the start
  membership_actor members;    ///< outlives the pipelines
  std::shared_ptr<kept_allocator> kept = std::make_shared<kept_allocator>();
  std::shared_ptr<epoch_members> workers;          ///< of the epoch to build; null: none so far
  std::optional<scheduler::parity_ledgers> parity; ///< where a cell shall have parity
  scheduler::pool_begin began;                     ///< of that, for the epoch to build
  std::shared_ptr<digest_book> digests;            ///< of its K and V; null without
  uint64_t rebuild_bytes = 16 << 20; ///< of a member's KV that are reconstructed at once
  uint64_t move_bytes = 32 << 20;    ///< of the pool's KV that are copied at once
  bool planned = false; ///< the pipeline to build takes over from one that has ended in order
  bool moved = false;   ///< KV was copied to its shards
  /// A pipeline to which KV was moved could not be made: the allocator may have given sequences the
  /// slots that they would have had there, so that no member has their KV.
  bool moved_in_vain = false;
  uint32_t returning = 0; ///< where `planned`: sequences that decoded in the one that has ended
  service base;           ///< all but the handles and the epoch
  /// Long computations get a thread of their own; not in simulated time.
  bool own_threads = true;
  /// Of batches, and of prefill workers.
  std::shared_ptr<first_iterations> first_decodes = std::make_shared<first_iterations>(),
                                    first_prefills = std::make_shared<first_iterations>();
  std::shared_ptr<suspect_board> suspects = std::make_shared<suspect_board>();
  std::shared_ptr<health_board> health;
  std::shared_ptr<net::metrics> metrics;
};

} // namespace lamella::actors
