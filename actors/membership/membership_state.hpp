/// The state of MEMBERSHIP, which its parts share.
#pragma once

#include "actors/membership/measured_times.hpp"
#include "actors/membership/membership_config.hpp"
#include "actors/membership/worker_reports.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/shared/parity_whole.hpp"
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

/// With the messages that only itself and PARITY KEEPERs send.
using membership_self =
    membership_actor::extend<caf::reacts_to<reach_atom, uint64_t>,
                             caf::reacts_to<parity_whole_atom, uint64_t, uint32_t>>;

struct size_changes; // pool_parts.hpp

struct membership_state {
  /// A worker in its seat.
  struct member {
    scheduler::seat where;
    worker_info info;
    worker_actor handle;   ///< null until its model is loaded
    std::string address;   ///< of its data plane
    uint64_t joined = 0;   ///< grows with each join
    bool for_good = false; ///< it is not to join again: its seat is taken away, or it is drained
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
    caf::actor_clock::time_point since{}; ///< of one beside
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
  std::optional<caf::actor_clock::time_point>
      short_since; ///< shards are lacking, and no epoch is possible, since
  std::optional<caf::actor_clock::time_point> dropped_at; ///< an epoch, not tried again since
  pool_sizes wanted; ///< as asked for; `newest` may not have them yet
  /// Seats that shall have no part, and since when.
  std::map<scheduler::seat, caf::actor_clock::time_point> draining;
  std::map<scheduler::seat_group, uint32_t> extra_seats;    ///< beyond the sizes: spares, parity
  std::map<scheduler::worker_role, uint32_t> before_drains; ///< members; none: no worker has left
  std::shared_ptr<size_changes> changes;
  pool_numerics compute, attention;  ///< of the first workers of these kinds; fixed
  std::vector<scheduler::seat> held; ///< holder of the KV of each shard, see held_by()
  /// The memory that holds the KV of each part.
  using cache_places = std::map<scheduler::kv_part, uint64_t>;
  cache_places caches;        ///< of the newest epoch that a pipeline was built of
  uint64_t handed_epoch = 0;  ///< the newest that was handed out; it may never be built
  cache_places handed_caches; ///< of that one
  /// The caches of each shard's worker, by a number each.
  std::map<scheduler::seat, std::map<scheduler::kv_part, uint64_t>> memory;
  uint64_t memories = 0; ///< the newest of them
  /// Cells whose parity is complete, by the newest epoch in which some is.
  std::pair<uint64_t, std::set<uint32_t>> whole_parity;
  scheduler::slow_workers pace;
  std::map<scheduler::seat, std::pair<uint32_t, work_done>>
      done; ///< at the last poll, with incarnation
  worker_reports reports;
  measured_times measured;
  scheduler::pipeline_patience patience;
  /// Host and process id of workers that were slow and have not recovered since, the newest last,
  /// `shunned_max` at most: they are recognised in any seat.
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
