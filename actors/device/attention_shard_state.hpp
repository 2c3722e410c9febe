/// The configuration and the state of an ATTENTION SHARD, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/work_meter.hpp"
#include "gpu/runners/attention_runner.hpp"
#include "gpu/runners/kv_cache.hpp"
#include "net/link/fabric.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/pull_plan.hpp"
#include "scheduler/seat_table.hpp"

#include <map>
#include <memory>
#include <optional>

namespace lamella::actors {

/// Configuration of a shard; immutable.
struct shard_config {
  uint32_t seat = 0;   ///< member of its pool; the one of the parity comes last
  bool parity = false; ///< holds the parity of the others (decision 23)
  /// Only spans with slots of this table are its own; nothing: all.
  std::optional<uint32_t> table{};
  uint32_t group = 1;
  float scale = 1;
  gpu::half_type wire = gpu::half_type::f16;
  uint32_t mini_batches = 1; ///< of its rows in an iteration, as the replicas have it
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<gpu::kv_cache> cache;
  net::link_source links;          ///< this seat's end of a link, connected
  net::link_source member_links;   ///< the same for links to other members, once each; may be null
  uint64_t parity_frame_bytes = 0; ///< largest frame of the parity links
  std::shared_ptr<net::metrics> metrics; ///< may be null
  std::shared_ptr<work_meter> meter;     ///< counts attended positions; may be null
  std::function<std::vector<uint32_t>(stream_id)> replicas_of; ///< by turn (L-M17)
  std::shared_ptr<gpu::kv_hand_over> hand_over;                ///< of a prefill worker's own shard
  /// Of the seat, whose epochs share it: pulls of one step aside for attention of the other. Null:
  /// the shard has its own.
  std::shared_ptr<gpu::qkv_watch> watch{};
};

struct attention_shard_state {
  shard_config config;
  gpu_executor_actor executor;
  /// State of a stream from one iteration to the next.
  struct stream_state {
    scheduler::seat_copy seats;
    std::vector<uint32_t> replicas;   ///< that run its slices in turn
    std::vector<net::link_end> links; ///< to these; of a stream between members: the one
    uint64_t epoch = 0;
    caf::actor_clock::time_point ended{};         ///< of the newest finished iteration
    std::shared_ptr<scheduler::pull_pacer> pacer; ///< of the pulls of a prefill worker's stream
  };
  std::map<stream_id, stream_state> streams;
  std::map<uint32_t, net::link_end> lends; ///< by the member that receives KV
  std::shared_ptr<gpu::qkv_watch> watch;   ///< null where streams do not run on the host
  const char* name = "attention_shard";
};

using shard_ptr = attention_shard_actor::stateful_pointer<attention_shard_state>;

/// The state of a stream, connected for that epoch.
attention_shard_state::stream_state& stream_of(shard_ptr self, stream_id id, uint64_t epoch);

/// Whether a step of background work may run now: in the gaps of attention (L-M28). Empty: always.
std::function<bool()> gaps_of(shard_ptr self);
std::function<bool()> gaps_of(const std::shared_ptr<const gpu::qkv_watch>& watch);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::shard_config)
