/// What MEMBERSHIP and WORKER tell each other of peers that are asked over the data plane
/// (net/data_plane/peer_reach.hpp).
#pragma once

#include "actors/protocol/actors.hpp"

#include <string>
#include <vector>

namespace lamella::actors {

/// Whom a worker asks over the data plane, again and again, whether they hear each other: shards.
/// Without peers where the worker has said that it knows this list.
struct watch_order {
  uint64_t version = 0; ///< of the list, from 1
  bool whole = false;   ///< `peers` is the list
  std::vector<epoch_peer> peers;
};

/// What has come of asking one of them (net/data_plane/peer_reach.hpp).
struct watched_peer {
  std::string seat;
  uint32_t incarnation = 0;
  bool answers = false;
  uint32_t failing_ms = 0;
};

struct watch_report {
  bool able = false;    ///< its data plane can ask
  uint64_t version = 0; ///< of the list that it knows
  std::vector<watched_peer> peers;
};

LAMELLA_INSPECT(watch_order, x.version, x.whole, x.peers)
LAMELLA_INSPECT(watched_peer, x.seat, x.incarnation, x.answers, x.failing_ms)
LAMELLA_INSPECT(watch_report, x.able, x.version, x.peers)

/// WORKER, as MEMBERSHIP alone asks it.
using watching_worker_actor =
    worker_actor::extend<caf::replies_to<watch_order>::with<watch_report>>;

} // namespace lamella::actors
