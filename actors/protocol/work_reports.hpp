/// Workers as the service sees them: who sits where, and what each has done.
#pragma once

#include "actors/protocol/actors.hpp"
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
  bool draining = false; ///< it leaves when another worker can have its part
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

} // namespace lamella::actors

// clang-format off
#define LAMELLA_WORK_REPORTS_MESSAGES(x) \
  x(worker_info) x(work_done) x(stage_report) x(worker_peers)
// clang-format on
LAMELLA_PART(peer_info)
LAMELLA_WORK_REPORTS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
