/// Workers probe each other over the data plane.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
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
#define LAMELLA_WATCHES_MESSAGES(x) \
  x(watch_order) x(watch_report)
// clang-format on
LAMELLA_PART(watched_peer)
LAMELLA_PART(torn_links)
LAMELLA_WATCHES_MESSAGES(LAMELLA_MADE_ELSEWHERE)
