/// The configuration and the state of a WORKER, which its parts share.
#pragma once

#include "actors/device/gpu_executor.hpp"
#include "actors/machine/link_port.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "actors/shared/busy_share.hpp"
#include "actors/shared/log_drops.hpp"
#include "actors/shared/work_meter.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/runners/kv_cache.hpp"
#include "gpu/runners/qkv_watch.hpp"
#include "gpu/runners/weights.hpp"
#include "model/program/program.hpp"
#include "net/link/faulty_sender.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/membership/pool_layout.hpp"
#include "scheduler/membership/seats.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::actors {

/// Why a WORKER ended.
enum class worker_end {
  sent_away, ///< it may join again
  dismissed, ///< its seat is gone
  failed
};

/// Configuration of a worker; fixed while it has its seat.
struct worker_config {
  scheduler::seat where;
  uint32_t incarnation = 0;
  worker_terms terms;
  std::shared_ptr<gpu::host_engine> engine;
  /// Creates its devices, or returns one device for all names; empty: created by the engine.
  std::function<std::shared_ptr<gpu::device>(const std::string& name, uint32_t rank)> make_device;
  std::shared_ptr<const model::model_program> program; ///< null for an attention seat
  std::shared_ptr<const gpu::packed_weights> weights;  ///< null for an attention seat
  /// Of ranks 1, 2, ... of a replica that is several devices (L-M03).
  std::vector<std::shared_ptr<const gpu::packed_weights>> other_weights{};
  link_port port;
  std::shared_ptr<net::metrics> metrics; ///< null where it reports its numbers instead
  /// Streams that all seats of this process have at once on the device of a rank; empty: it has its
  /// devices for itself.
  std::function<size_t(uint32_t rank)> streams_on_device{};
  failed_work on_failed_work = failed_work::ends_executor;
  /// Bytes that KV on the host can still write; empty: what the machine and its control groups
  /// leave.
  std::function<uint64_t()> free_memory{};
  /// Called once with the exit reason: a message of the control process, or a failed device.
  std::function<void(const std::string& reason, worker_end how)> on_end;
};

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
