/// MEMBERSHIP: which seats there are and who sits in them; writes the epochs (decision 21).
#pragma once

#include "actors/membership/worker_reports.hpp"
#include "actors/protocol/actors.hpp"
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/epoch_plan.hpp"
#include "scheduler/membership/probe_patience.hpp"
#include "scheduler/membership/reach_book.hpp"
#include "scheduler/membership/seats.hpp"
#include "scheduler/membership/slow_workers.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace lamella::actors {

using reach_atom = caf::atom_constant<caf::atom("reach")>;
constexpr reach_atom reach_atom_v{};

/// With what it tells itself alone.
using membership_self = membership_actor::extend<caf::reacts_to<reach_atom, uint64_t>>;

/// Who is there.
struct seat_news {
  const scheduler::seat_plan& seats;
  const std::set<scheduler::seat>& ready;            ///< their workers have loaded what they need
  const std::vector<scheduler::worker_role> lacking; ///< for want of them nothing can be decoded
  const std::set<scheduler::seat> slow;              ///< late but correct
  const std::set<scheduler::seat> failing;           ///< their processes end again and again
};

struct membership_config {
  scheduler::seat_plan seats; ///< of worker processes; none when all pools are in process
  scheduler::identity wanted; ///< of workers
  /// Pools whose kernels are known when the first worker has come: those of the class of its
  /// device. All others of the pool must have the same, and prefill workers those of replicas.
  std::set<scheduler::worker_role> on_devices{};
  scheduler::epoch_shape shape; ///< of an epoch in which nobody is missing
  std::function<worker_terms(const scheduler::seat&)> terms_of;
  /// Told whenever a seat is taken or lost, or its worker is ready; called on the actor's thread.
  std::function<void(const seat_news&)> on_change;
  /// Told of a worker that takes a seat or loses it; called on the actor's thread. May be empty.
  /// `own_fault`: it has said itself that what it served with failed.
  std::function<void(const worker_info&, bool lost, bool own_fault)> on_worker;
  /// Told of a worker that has loaded what it needs, in the same way. May be empty.
  std::function<void(const worker_info&)> on_serving{};
  /// Seats that fail keep the first epoch from ever being opened; says which. May be empty.
  std::function<void(const std::string& why)> on_hopeless{};
  /// Told, before that, of a worker with a part in an epoch that is open or being opened. May be
  /// empty.
  std::function<void(const worker_info&, uint64_t epoch, std::vector<scheduler::stream_id> served,
                     bool own_fault)>
      on_part_lost;
  caf::timespan load_patience{std::chrono::minutes{10}};  ///< from a seat to the facts
  caf::timespan epoch_patience{std::chrono::seconds{30}}; ///< for a worker to open an epoch
  caf::timespan look_every{0}; ///< at what workers have done, to find slow ones; 0: never
  /// Silence after which a connection is closed; workers are given up before. 0: neither.
  caf::timespan dead{0};
  std::shared_ptr<net::metrics> numbers; ///< may be null
  /// Between two workers that are replaced because they are slow.
  caf::timespan replace_every{std::chrono::minutes{1}};
};

struct membership_state {
  /// A worker in its seat.
  struct member {
    scheduler::seat where;
    worker_info info;
    worker_actor handle; ///< null until its model is loaded
    std::string address; ///< of its data plane
    uint64_t joined = 0; ///< grows with each join
    caf::actor_clock::time_point live_since{};
    /// All others hear it over the data plane, and it them: it may have a part.
    bool trusted = false;
    uint64_t watch_version = 0; ///< of the list of peers that it knows
    std::optional<caf::actor_clock::time_point> fenced_at, proven_since;
  };
  /// An epoch that is being opened.
  struct opening {
    epoch_members result;
    std::set<scheduler::seat> left; ///< workers that have not answered
  };
  membership_config config;
  std::map<std::string, worker_info> in_process; ///< seats of actors of this process, by seat
  std::map<scheduler::seat, member> members;
  std::map<caf::actor_addr, std::pair<scheduler::seat, uint32_t>> who; ///< and its incarnation
  uint64_t epoch = 0;
  std::optional<caf::typed_response_promise<epoch_members>> asked; ///< by the supervisor
  caf::actor_addr owner;                                           ///< who asked last
  std::optional<opening> current;
  scheduler::epoch_plan plan;        ///< of the newest epoch
  pool_numerics compute, attention;  ///< of the first workers of these kinds; they stay
  std::vector<scheduler::seat> held; ///< who has the KV of each shard, by number
  /// Whose caches the KV lies in, by shard.
  using cache_places = std::map<uint32_t, std::pair<scheduler::seat, uint32_t>>; ///< incarnation
  cache_places caches;        ///< of the newest epoch that a pipeline was built of
  uint64_t handed_epoch = 0;  ///< the newest that was handed out; it may never be built
  cache_places handed_caches; ///< of that one
  std::map<scheduler::seat, uint64_t> memory; ///< the cache of each shard's worker, by a number
  uint64_t memories = 0;                      ///< the newest of them
  scheduler::slow_workers pace;
  std::map<scheduler::seat, std::pair<uint32_t, work_done>> done; ///< at the last look, by whom
  worker_reports reports;
  /// Host and process id of those that were slow, the newest last, `shunned_max` at most: whatever
  /// seat they take, they are known.
  std::deque<std::pair<std::string, uint32_t>> shunned;
  std::optional<caf::actor_clock::time_point> replaced_at; ///< the newest slow one
  std::optional<scheduler::probe_patience> patience;       ///< nothing: nobody is asked
  std::set<scheduler::seat> asking;                        ///< how they are
  std::deque<std::pair<std::string, uint32_t>> given_up; ///< host and pid of those that were silent
  scheduler::reach_book reach;                           ///< of all members, over the data plane
  uint64_t watch_version = 0;                            ///< of the list of peers that they ask
  std::set<scheduler::seat> watching;                    ///< are asked whom they hear
  uint64_t reach_tick = 0;                               ///< the newest one that is due
  uint64_t joins = 0;
  /// Of those that were fenced, by host and name; `rests_max` at most.
  std::map<std::pair<std::string, std::string>, scheduler::fence_rest> rests;
  uint64_t losses = 0;                             ///< of workers with a part
  std::map<scheduler::seat, std::string> failing;  ///< why, until somebody serves there
  std::map<scheduler::seat, std::string> refusals; ///< of who left each seat before it was ready
  bool open = false;     ///< the newest epoch has been handed out and is whole
  bool was_open = false; ///< some epoch has been
  const char* name = "membership";
};

/// A worker takes a seat (`seat_ask`), loads, and says what it has (`worker_facts`); whoever
/// differs from `wanted` is sent away. The first epoch is opened when nobody is missing and the
/// supervisor has asked; spares are not waited for. The loss of a worker that has a part in it
/// closes an epoch and is told to the supervisor, which asks again: the next one is opened as soon
/// as it could decode, with fewer replicas if need be, and once more when those are back.
/// A worker that says nothing is given up (`scheduler/membership/probe_patience`), as is one whose
/// connection ends. One that is slow (`scheduler/membership/slow_workers`) is told of; where
/// somebody can do its part at once and without computing, it loses it and joins again, as a spare
/// that is taken last. A worker gets a part when all hear it over the data plane, and is fenced
/// when that is over
/// (`membership_reach.hpp`).
/// `worker_info` is for the seats of actors of this process.
membership_self::behavior_type membership(membership_self::stateful_pointer<membership_state> self,
                                          membership_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::membership_config)
