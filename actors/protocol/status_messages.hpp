/// The status of the system: seats, workers, and usage of the pools.
#pragma once

#include "actors/protocol/messages.hpp"

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
};

struct pool_info {
  std::string name, partition;
  uint32_t members = 0;
  uint64_t slots = 0, used = 0, cached = 0; ///< as in kv_usage
  uint64_t parity = 0, orphan = 0;          ///< used slots with parity; used slots without a holder
  uint64_t free = 0, references = 0, held = 0; ///< as in kv_usage
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
  uint64_t running = 0, waiting = 0;          ///< sequences
  uint64_t requests = 0, restarts = 0;        ///< of the gateway; of the pipeline
  std::vector<supervisor_status> supervisors; ///< from the root down
};

LAMELLA_INSPECT(peer_info, x.seat, x.transport, x.rtt_us, x.bytes, x.measured)
LAMELLA_INSPECT(worker_info, x.name, x.role, x.seat, x.state, x.device, x.incarnation, x.host,
                x.pid, x.peers, x.slow, x.part, x.trouble)
LAMELLA_INSPECT(pool_info, x.name, x.partition, x.members, x.slots, x.used, x.cached, x.parity,
                x.orphan, x.free, x.references, x.held)
LAMELLA_INSPECT(restart_budget, x.used, x.allowed, x.window_s)
LAMELLA_INSPECT(child_status, x.name, x.role, x.count, x.restarts)
LAMELLA_INSPECT(supervisor_status, x.name, x.strategy, x.restarts, x.children, x.more)
LAMELLA_INSPECT(system_status, x.epoch, x.pool, x.workers, x.missing, x.pools, x.running, x.waiting,
                x.requests, x.restarts, x.supervisors)

} // namespace lamella::actors
