/// Status of the whole service: who sits where, how full the pools are.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/supervisors.hpp"
#include "actors/protocol/work_reports.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

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

} // namespace lamella::actors

// clang-format off
#define LAMELLA_STATUS_MESSAGES(x) x(system_status)
// clang-format on
LAMELLA_PART(cell_info)
LAMELLA_PART(pool_info)
LAMELLA_PART(pipeline_info)
LAMELLA_PART(time_info)
LAMELLA_STATUS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
