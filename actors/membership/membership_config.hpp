/// What MEMBERSHIP is started with.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/pool_layout.hpp"
#include "scheduler/membership/seats.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

/// The current set of workers.
struct seat_news {
  const scheduler::seat_plan& seats;
  const std::set<scheduler::seat>& ready; ///< seats whose workers have finished loading
  const std::vector<scheduler::worker_role>
      lacking; ///< missing roles without which decoding is impossible
  /// Members of each pool without missing workers, those with parity included.
  const std::map<scheduler::worker_role, uint32_t> needed;
  const uint32_t parity; ///< members of the attention pool that hold parity, missing ones included
  const std::set<scheduler::seat> slow;    ///< slow workers (gray failure)
  const std::set<scheduler::seat> failing; ///< seats whose processes keep crashing
  const std::set<scheduler::seat> fenced;  ///< seats of workers that live and are not used
};

/// The pools at certain sizes.
struct epoch_design {
  scheduler::epoch_shape shape;
  pool_terms pool;
};

/// Members of a pool.
struct size_bounds {
  uint32_t least = 1, most = 0;
};

/// What `batching.pipeline: auto` needs to know beside what is measured.
struct pipeline_choosing {
  uint32_t max_batch = 1, layers = 1;
  /// Why batches cannot overlap with pools of these sizes; empty: they can. May be empty.
  std::function<std::string(const pool_sizes&)> obstacle_of{};
};

struct membership_config {
  scheduler::seat_plan seats; ///< of worker processes and of this process
  /// Of groups with members, beyond these: spares, and seats for parity. Groups that are not named:
  /// what they have at the start.
  std::map<scheduler::seat_group, uint32_t> extra_seats{};
  scheduler::identity wanted; ///< of workers
  /// Pools whose kernel set is determined by the device class of the first worker. Later workers of
  /// the pool must have the same set, and prefill workers that of the replicas.
  std::set<scheduler::worker_role> on_devices{};
  scheduler::epoch_shape shape;               ///< in force: of an epoch without missing workers
  pool_terms pool;                            ///< of that
  std::optional<pipeline_choosing> chooses{}; ///< the pipeline of each epoch; nothing: by the shape
  uint32_t kv_heads = 1;                      ///< of the model
  std::vector<std::string> cells{}; ///< names of the attention pool's cells; none: it is one
  /// Slots of a table without which a request could be too large: the tokens of a context. 0: an
  /// attention pool never serves with fewer members than it should have.
  uint32_t least_slots = 0;
  /// From a loss that leaves too few shards until those that are left serve alone.
  caf::timespan fewer_after{std::chrono::milliseconds{1500}};
  /// What pools of other sizes mean. Throws std::invalid_argument with the reason when they are
  /// impossible. Empty: the pools keep their sizes.
  std::function<epoch_design(const pool_sizes&)> design_of{};
  /// Called with all seats when some are added or taken away; on the actor's thread. May be empty.
  std::function<void(const std::set<scheduler::seat>&)> on_resize{};
  /// Seats of child processes: one with a name that a worker has already was started in its place.
  std::set<scheduler::seat_group> of_children{};
  /// Pools whose sizes follow the workers that join, and those that leave by themselves.
  std::map<scheduler::worker_role, size_bounds> follows{};
  /// From a change of a pool's size until it is rolled back because its workers are not ready; also
  /// of a worker that is drained, until it keeps its part.
  caf::timespan resize_timeout{std::chrono::minutes{1}};
  /// Terms of a seat; `place`: seats of its group with lower indices.
  std::function<worker_terms(const scheduler::seat&, uint32_t place)> terms_of;
  /// Called when a seat is taken or lost or its worker is ready; on the actor's thread.
  std::function<void(const seat_news&)> on_change;
  /// Called when a worker takes or loses a seat, `trouble` being the reason of the loss; on the
  /// actor's thread. May be empty. `own_fault`: the worker reported a failure of its own part.
  std::function<void(const worker_info&, bool lost, bool own_fault)> on_worker;
  /// Called when a worker has finished loading, likewise. May be empty.
  std::function<void(const worker_info&)> on_serving{};
  /// Called when failing seats make the first epoch impossible, or failing seats of this process
  /// any epoch, with their names. May be empty.
  std::function<void(const std::string& why)> on_hopeless{};
  /// Called before that for a worker with a part in an open or opening epoch. May be empty.
  std::function<void(const worker_info&, uint64_t epoch, std::vector<scheduler::stream_id> served,
                     bool own_fault)>
      on_part_lost;
  caf::timespan load_timeout{std::chrono::minutes{10}};  ///< from a seat to the facts
  caf::timespan epoch_timeout{std::chrono::seconds{30}}; ///< for a worker to open an epoch
  caf::timespan poll_interval{
      0}; ///< polling interval of work reports, to find slow workers; 0: never
  /// Silence after which a connection is closed; workers are declared dead earlier. 0: neither.
  caf::timespan dead{0};
  /// How long the threads of a worker have waited for processors so far; nothing where it is not
  /// known. May be empty.
  std::function<std::optional<std::chrono::nanoseconds>(const worker_info&)> waited_of{};
  uint32_t prefill_on_replicas = 0;      ///< prefill workers without seats, for status
  std::shared_ptr<net::metrics> metrics; ///< may be null
  /// Minimum time between two replacements of slow workers.
  caf::timespan replace_every{std::chrono::minutes{1}};
};

/// Starts it; see membership.hpp.
membership_actor start_membership(caf::actor_system& system, membership_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::membership_config)
