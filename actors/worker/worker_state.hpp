/// The state of a WORKER, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/shared/busy_share.hpp"
#include "actors/shared/log_drops.hpp"
#include "actors/shared/work_meter.hpp"
#include "actors/worker/worker_config.hpp"
#include "gpu/runners/kv_cache.hpp"
#include "gpu/runners/qkv_watch.hpp"
#include "net/link/faulty_sender.hpp"
#include "scheduler/membership/pool_layout.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::actors {

/// An open epoch of a worker.
struct worker_epoch {
  epoch_open order;
  std::map<net::link_key, net::link_end> links; ///< of its part
  std::map<net::link_key, net::link_end> lends; ///< to the shards that take KV of `order.beside`
  std::vector<caf::strong_actor_ptr> parts;     ///< a replica, a shard, or more
  std::vector<gpu_executor_actor> executors;
  kv_source_actor lender; ///< of the KV of `order.beside`, until that has ended; null: none
  gpu_executor_actor lends_on;
  scheduler::kv_part stores{}; ///< of an attention seat with a part
};

struct worker_state {
  /// An epoch to open once the work of the previous one has ended.
  struct opening {
    epoch_open order;
    caf::typed_response_promise<epoch_ready> promise;
  };
  worker_config config;
  /// Open epochs, by number: one, or two while a pipeline is taken over.
  std::map<uint64_t, worker_epoch> epochs;
  std::optional<opening> next;
  /// Parts and executors of closed epochs, and when they were asked to stop.
  std::map<caf::actor_addr, caf::actor_clock::time_point> ending;
  uint32_t late_looks = 0; ///< consecutive polls that found some of them overdue
  std::optional<caf::actor_clock::time_point> slow_until; ///< by an injected fault
  /// Stages frames where the links do not reach the device's memory; null where they do.
  std::shared_ptr<gpu::device> carries;
  std::shared_ptr<gpu::device> device;
  std::vector<std::shared_ptr<gpu::device>> other_devices; ///< of ranks 1, 2, ...
  /// Of an attention seat: its KV outlives epochs (L-M25). Two while one is copied from the other.
  std::map<scheduler::kv_part, std::shared_ptr<gpu::kv_cache>> caches;
  /// Whether attention of any epoch waits; null where streams do not run on the host.
  std::shared_ptr<gpu::qkv_watch> watch;
  std::map<std::string, uint64_t> sent; ///< bytes to each peer's seat, in closed epochs
  std::array<uint64_t, net::frame_faults> dropped{}; ///< frames, in closed epochs
  std::map<std::string, uint32_t> torn; ///< links by peer's seat: frames failed their checks
  uint64_t log_dropped_before = log_lines_dropped; ///< when it took its seat
  std::shared_ptr<work_meter> meter = std::make_shared<work_meter>();
  std::shared_ptr<net::flaws> flaws = std::make_shared<net::flaws>(); ///< of its links
  /// A peer that is probed over the data plane.
  struct watched {
    uint32_t incarnation = 0;
    std::string address;
    std::shared_ptr<const net::peer_reach> reach; ///< null: it cannot be probed
  };
  std::map<std::string, watched> watched_peers; ///< by seat
  uint64_t watch_version = 0;                   ///< of that list
  busy_share busy;                              ///< of its device
  /// A recording that somebody fetches, by its id.
  std::optional<std::pair<uint64_t, trace_page>> traced;
  const char* name = "worker";
};

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::worker_config)
