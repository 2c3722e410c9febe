/// The configuration of a WORKER.
#pragma once

#include "actors/device/gpu_executor.hpp"
#include "actors/machine/link_port.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/runners/weights.hpp"
#include "model/program/program.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/membership/seats.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lamella::actors {

/// Why a WORKER ended.
enum class worker_end {
  sent_away, ///< it may join again
  dismissed, ///< its seat is gone, or it was drained
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

/// Starts it; see worker.hpp. `own_thread`: it shares none of the system's threads.
worker_actor start_worker(caf::actor_system& system, worker_config config, bool own_thread = false);

} // namespace lamella::actors
