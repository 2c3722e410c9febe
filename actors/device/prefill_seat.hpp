/// The prompts of a prefill worker with KV of its own: the usual slice program, with attention on a
/// private shard (decision 26).
#pragma once

#include "actors/device/gpu_executor.hpp"
#include "actors/device/kv_source.hpp"
#include "actors/device/model_replica.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/pulls.hpp"

namespace lamella::actors {

/// Configuration of a seat; immutable.
struct prefill_seat_config {
  uint32_t seat = 0; ///< replica number
  uint64_t epoch = 0;
  std::vector<stream_id> streams; ///< of prompts that it serves
  scheduler::kv_layout layout;    ///< of the attention pool, whose members pull
  gpu::half_type wire = gpu::half_type::f16, kv = gpu::half_type::f16;
  uint32_t slots = 0;                           ///< of its own KV
  uint64_t frame_bytes = 0;                     ///< largest frame between its replica and its shard
  std::shared_ptr<gpu::device> compute, memory; ///< of one engine, or the same device
  std::shared_ptr<const model::model_program> program;
  std::shared_ptr<const gpu::packed_weights> weights;
  net::link_source links; ///< this seat's ends of the links to the pool's shards, connected
  std::shared_ptr<work_meter> meter; ///< of its replica; may be null
  failed_work on_failed_work = failed_work::ends_executor;
};

struct prefill_seat {
  prefill_kv parts;
  gpu_executor_actor compute, memory; ///< of the devices of its replica and of its shard
};

/// Spawns the actors of a seat. Throws std::bad_alloc when its KV does not fit.
prefill_seat make_prefill_seat(caf::local_actor* parent, const prefill_seat_config& config);

} // namespace lamella::actors
