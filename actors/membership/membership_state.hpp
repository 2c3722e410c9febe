/// The configuration and the state of MEMBERSHIP, which its parts share.
#pragma once

#include "actors/membership/measured_times.hpp"
#include "actors/membership/worker_reports.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/probe_timeout.hpp"
#include "scheduler/membership/reach_book.hpp"
#include "scheduler/membership/seats.hpp"
#include "scheduler/membership/slow_workers.hpp"
#include "scheduler/times/pipeline_choice.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace lamella::actors {

/// With the messages it sends only to itself.
using membership_self = membership_actor::extend<caf::reacts_to<reach_atom, uint64_t>>;

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
  std::string obstacle; ///< why batches cannot overlap; empty: they can
};

struct membership_config {
  scheduler::seat_plan seats; ///< of worker processes and of this process
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
  /// From a change of a pool's size until it is rolled back because its workers are not ready.
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
  /// Called when failing seats make the first epoch impossible, with their names. May be empty.
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
  uint32_t prefill_on_replicas = 0;      ///< prefill workers without seats, for status
  std::shared_ptr<net::metrics> metrics; ///< may be null
  /// Minimum time between two replacements of slow workers.
  caf::timespan replace_every{std::chrono::minutes{1}};
};

struct membership_state {
  /// A worker in its seat.
  struct member {
    scheduler::seat where;
    worker_info info;
    worker_actor handle;   ///< null until its model is loaded
    std::string address;   ///< of its data plane
    uint64_t joined = 0;   ///< grows with each join
    bool seatless = false; ///< its seat is taken away
    caf::actor_clock::time_point live_since{};
    /// All peers reach it over the data plane, and it reaches them: it may have a part.
    bool trusted = false;
    uint64_t watch_version = 0; ///< of its current list of peers
    std::optional<caf::actor_clock::time_point> fenced_at, proven_since;
  };
  /// An epoch: its number, who plays which part, and at which sizes of the pools.
  struct numbered_plan {
    uint64_t epoch = 0;
    scheduler::epoch_plan plan;
    epoch_design design;
    std::vector<scheduler::seat> lenders{}; ///< shards of the epoch that serves, by number there
    bool levels = false;                    ///< sequences move between its tables

    /// All that have a part in it or lend KV to it.
    std::set<scheduler::seat> workers() const;
    bool has(const scheduler::seat& where) const { return workers().contains(where); }
    /// Its number among the replicas or the shards; no_part: none.
    uint32_t number_of(const scheduler::seat& where) const;
  };
  /// An epoch that is being opened.
  struct opening {
    epoch_members result;
    numbered_plan what;
    std::set<scheduler::seat> left; ///< workers that have not replied
  };
  membership_config config;
  /// A worker is gone or must go.
  std::function<void(const scheduler::seat&, const std::string& reason, net::failover_cause)> lose;
  std::map<scheduler::seat, member> members;
  std::map<caf::actor_addr, std::pair<scheduler::seat, uint32_t>> who; ///< and its incarnation
  uint64_t epoch = 0;                                                  ///< the newest number
  /// By the supervisor; `beside`: for an epoch while the newest one serves.
  struct question {
    caf::typed_response_promise<epoch_members> promise;
    bool beside = false;
  };
  std::optional<question> asked;
  caf::actor_addr owner; ///< the last requester
  std::optional<opening> current;
  numbered_plan newest; ///< of the newest epoch that was opened on its own or has taken over
  std::optional<numbered_plan> before; ///< it serves until the pipeline has moved to `newest`
  bool due = false;                    ///< the supervisor knows of a better epoch
  bool unequal = false;                ///< the tables of the epoch that serves are to be levelled
  bool apart = false; ///< memory holds the KV of one epoch only: the next one is opened on its own
  bool other_pipeline = false; ///< the batches of the epoch that serves are to run otherwise
  std::optional<caf::actor_clock::time_point> short_since; ///< no epoch is possible since
  std::optional<caf::actor_clock::time_point> dropped_at;  ///< an epoch, not tried again since
  pool_sizes wanted;                  ///< as asked for; `newest` may not have them yet
  std::set<scheduler::seat> draining; ///< seats that shall have no part
  std::map<scheduler::seat_group, uint32_t> extra_seats;    ///< beyond the sizes: spares, parity
  std::map<scheduler::worker_role, uint32_t> before_drains; ///< members; none: no worker has left
  std::optional<pool_change> changing;                      ///< under way
  caf::actor_clock::time_point changing_since{};
  std::map<std::string, pool_change> changes; ///< the newest of each pool, ended
  pool_numerics compute, attention;           ///< of the first workers of these kinds; fixed
  std::vector<scheduler::seat> held;          ///< holder of the KV of each shard, see held_by()
  /// The memory that holds the KV of each part.
  using cache_places = std::map<scheduler::kv_part, uint64_t>;
  cache_places caches;        ///< of the newest epoch that a pipeline was built of
  uint64_t handed_epoch = 0;  ///< the newest that was handed out; it may never be built
  cache_places handed_caches; ///< of that one
  /// The caches of each shard's worker, by a number each.
  std::map<scheduler::seat, std::map<scheduler::kv_part, uint64_t>> memory;
  uint64_t memories = 0; ///< the newest of them
  scheduler::slow_workers pace;
  std::map<scheduler::seat, std::pair<uint32_t, work_done>>
      done; ///< at the last poll, with incarnation
  worker_reports reports;
  measured_times measured;
  scheduler::pipeline_patience patience;
  /// Host and process id of workers that were slow, the newest last, `shunned_max` at most: they
  /// are recognised in any seat.
  std::deque<std::pair<std::string, uint32_t>> shunned;
  std::optional<caf::actor_clock::time_point> replaced_at; ///< time of the last replacement
  std::optional<scheduler::probe_timeout> timeout;         ///< nothing: workers are not probed
  std::set<scheduler::seat> asking;                        ///< probes in flight
  std::deque<std::pair<std::string, uint32_t>>
      given_up;                       ///< host and pid of workers declared dead for silence
  scheduler::reach_book reach;        ///< data plane reachability of all members
  uint64_t watch_version = 0;         ///< of the list of peers that workers probe
  std::set<scheduler::seat> watching; ///< seats polled for reachability
  uint64_t reach_tick = 0;            ///< the newest one that is due
  uint64_t joins = 0;
  /// Rest times of fenced workers, by host and name; `rests_max` at most.
  std::map<std::pair<std::string, std::string>, scheduler::fence_rest> rests;
  uint64_t losses = 0;                            ///< of workers with a part
  std::map<scheduler::seat, std::string> failing; ///< reason, until a worker serves there
  std::map<scheduler::seat, std::string>
      refusals;          ///< reason of the last worker that left the seat before it was ready
  bool open = false;     ///< `newest` was handed out and is complete
  bool was_open = false; ///< some epoch has been
  const char* name = "membership";
};

/// Seats of workers that may have a part: loaded and reachable.
std::set<scheduler::seat> ready_seats(const membership_state& st);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::membership_config)
