/// Status: who sits where, how full the pools are, what workers have done.
#pragma once

#include "actors/protocol/epochs.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// The links of a worker to another seat.
struct peer_info {
  std::string seat, transport; ///< no transport: not connected
  double rtt_us = 0;           ///< minimum of all links over the last ten seconds
  uint64_t bytes = 0;          ///< payload sent there since the worker took its seat
  uint64_t measured = 0;       ///< round trips, since these links are up
};

/// Work that the device of a worker did since the worker took its seat.
struct work_done {
  uint64_t iterations = 0;
  uint64_t units = 0; ///< rows of a replica, attended positions of a shard
  uint64_t busy_ns = 0;
};

/// One seat of a pool and its worker.
struct worker_info {
  std::string name, role, seat, state, device;
  uint32_t incarnation = 0;
  std::string host;
  uint32_t pid = 0;
  std::vector<peer_info> peers;
  bool slow = false; ///< slow compared with its peers (gray failure)
  std::string part;  ///< in the open epoch: "replica 1", "shard 2", "parity", "spare"; empty: none
  std::string trouble{}; ///< why its processes keep crashing; empty: they do not
  work_done work{};
  bool here = false; ///< an actor of the service's own process, which no other worker replaces
  double busy = -1;  ///< share of the last seconds in which its device computed; below 0: not known
  std::string cell{}; ///< the named attention cell of its part, of a holder of parity too; or empty
};

/// A named attention cell.
struct cell_info {
  std::string name;
  uint32_t members = 0;
  uint64_t slots = 0, used = 0; ///< of its tables, as in kv_usage
  std::string partition{};      ///< "heads" or "requests"
};

struct pool_info {
  std::string name, partition;
  uint32_t members = 0;
  uint64_t slots = 0, used = 0, cached = 0; ///< as in kv_usage
  uint64_t parity = 0, orphan = 0;          ///< used slots with parity; used slots without a holder
  uint64_t free = 0, references = 0, held = 0; ///< as in kv_usage
  std::vector<cell_info> cells{};              ///< none: the pool is one
};

/// How batches share replicas (`batching.pipeline`), as it is now.
struct pipeline_info {
  bool rotates = false;
  uint32_t batches = 0;
};

/// A time of this service as it was measured (scheduler/times/machine_times.hpp).
struct time_info {
  std::string work, cell; ///< "launch", "attention", "prompt attention"; no cell: of the pool
  double units = 0;       ///< rows or attended positions of the newest iterations, on average
  double seconds = 0;     ///< that such an iteration is expected to take
  double correction = 1;  ///< measured over predicted, of the newest ones
  uint64_t samples = 0;
};

/// Restart budget of a supervisor.
struct restart_budget {
  uint32_t used = 0, allowed = 0, window_s = 0; ///< allowed is 0: no restarts
};

/// A child of a supervisor, or several of a kind.
struct child_status {
  std::string name, role; ///< role: of its worker; may be empty
  uint32_t count = 1;
  restart_budget restarts{}; ///< of the child alone, where each has its own
};

/// One supervisor and its children; at most `children_told_max` of them.
struct supervisor_status {
  std::string name, strategy; ///< none, one_for_one or one_for_all
  restart_budget restarts{};
  std::vector<child_status> children;
  uint64_t more = 0; ///< children that are not listed
};

constexpr size_t children_told_max = 64;

struct system_status {
  uint64_t epoch = 0;
  std::string pool; ///< of attention, whose epoch that is
  std::vector<worker_info> workers;
  std::vector<worker_info> missing; ///< empty seats of processes; with the last incarnation
  std::vector<pool_info> pools;
  std::vector<pool_change> changes;           ///< the newest of each pool with workers of its own
  uint64_t running = 0, waiting = 0;          ///< sequences
  uint64_t requests = 0, restarts = 0;        ///< of the gateway; of the pipeline
  std::vector<supervisor_status> supervisors; ///< from the root down
  pipeline_info pipeline{};
  std::vector<time_info> times{};
};

/// Durations of one stage of its iterations, since it took its seat.
struct stage_report {
  std::vector<uint64_t> counts; ///< by bucket of base/time_histogram.hpp; empty: none
  uint64_t total_ns = 0;
};

/// The peers of a worker in the open epoch, and its work.
struct worker_peers {
  std::vector<peer_info> peers;
  work_done work{};
  uint64_t computed_ns = 0; ///< of its device, work that is not compared with peers included
  std::vector<stage_report> stages{}; ///< by net::iteration_stage
  std::vector<uint64_t> dropped{};    ///< frames since it took its seat, by net::frame_fault
  uint64_t log_dropped = 0;           ///< lines of its log, since it took its seat
  double busy = -1;                   ///< as in worker_info
  /// Its iterations by kind (launch_kind); no iterations: its device cannot tell its work from its
  /// waits.
  work_done tokens{}, prompts{};
};

/// The peers (shards) that a worker probes periodically over the data plane. Without peers where
/// the worker has confirmed this list.
struct watch_order {
  uint64_t version = 0; ///< of the list, from 1
  bool whole = false;   ///< `peers` is the list
  std::vector<epoch_peer> peers;
};

/// Probe result of one peer (net/data_plane/peer_reach.hpp).
struct watched_peer {
  std::string seat;
  uint32_t incarnation = 0;
  bool answers = false;
  uint32_t failing_ms = 0;
};

/// Links of closed epochs that the worker has ended because frames of that peer failed their
/// checks.
struct torn_links {
  std::string seat;
  uint32_t links = 0; ///< since the worker took its seat
};

struct watch_report {
  bool able = false;    ///< its data plane can probe
  uint64_t version = 0; ///< of its current list
  std::vector<watched_peer> peers;
  std::vector<torn_links> torn{}; ///< peers without any are left out
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_STATUS_MESSAGES(x) \
  x(worker_info) x(system_status) x(supervisor_status) x(work_done) x(stage_report) \
  x(worker_peers) x(watch_order) x(watch_report)
// clang-format on
LAMELLA_PART(peer_info)
LAMELLA_PART(cell_info)
LAMELLA_PART(pool_info)
LAMELLA_PART(pipeline_info)
LAMELLA_PART(time_info)
LAMELLA_PART(restart_budget)
LAMELLA_PART(child_status)
LAMELLA_PART(watched_peer)
LAMELLA_PART(torn_links)
LAMELLA_STATUS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
