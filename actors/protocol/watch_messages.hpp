/// Messages between MEMBERSHIP and WORKER about probes over the data plane
/// (net/data_plane/peer_reach.hpp).
#pragma once

#include "actors/protocol/actors.hpp"

#include <string>
#include <vector>

namespace lamella::actors {

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

struct watch_report {
  bool able = false;    ///< its data plane can probe
  uint64_t version = 0; ///< of its current list
  std::vector<watched_peer> peers;
};

LAMELLA_INSPECT(watch_order, x.version, x.whole, x.peers)
LAMELLA_INSPECT(watched_peer, x.seat, x.incarnation, x.answers, x.failing_ms)
LAMELLA_INSPECT(watch_report, x.able, x.version, x.peers)

/// WORKER with the messages that only MEMBERSHIP sends.
using watching_worker_actor =
    worker_actor::extend<caf::replies_to<watch_order>::with<watch_report>>;

} // namespace lamella::actors
