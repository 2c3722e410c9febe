/// What the control plane needs of the data plane: an address to publish, and connected ends.
#pragma once

#include "gpu/ring/doorbell.hpp"
#include "gpu/ring/ring_end.hpp"
#include "net/data_plane/peer_reach.hpp"
#include "net/link/fabric.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lamella::actors {

/// Which side of a link this process is.
enum class link_side : uint8_t { replica, shard };

/// One end of a link, as it is asked for.
struct link_order {
  link_side side = link_side::replica;
  net::link_key key;
  std::string peer; ///< address of the process at the other end
  uint64_t frame_bytes = 0;
  gpu::ring_identity self;
  std::optional<gpu::ring_identity> other{}; ///< who must be at the other end
  std::chrono::milliseconds patience{10'000};
  /// Whose streams use this side, where the port is `direct`; null: streams of the host.
  std::shared_ptr<gpu::device> device{};
};

/// What is known of a link; empty while the two sides have not met.
struct link_report {
  std::string transport; ///< its tier, named as in `net.transport`
  double rtt_us = 0;     ///< the least of the last ten seconds; 0: none was measured
  uint64_t measured = 0; ///< round trips, since the link stands
};

/// The data plane as workers see it. Addresses are opaque: they are told at the join and handed on.
struct link_port {
  std::string address; ///< where others reach this process

  /// One end of a link to the process behind `peer`. Returns at once: streams wait until the two
  /// sides have met. Throws std::exception with the reason when it cannot be had.
  std::function<net::link_end(const link_order&)> open;

  /// Whether a device can have its side of a link in its own memory: else a device's frames go
  /// through a link of the host (net/link/staged_link.hpp).
  bool direct = false;

  std::function<link_report(const net::link_key&)> report;

  /// Asks the process behind that address whether the two hear each other, again and again, for as
  /// long as the result is held. Throws std::exception with the reason. Empty: it cannot.
  std::function<std::shared_ptr<const net::peer_reach>(const std::string& address)> watch;

  /// An injury: for so long nobody is heard, and hears. May be empty.
  std::function<void(std::chrono::milliseconds)> isolate;

  /// Forgets whatever belongs to that epoch; wakes who waits in `open` for it.
  std::function<void(uint64_t epoch)> close;
};

/// What a process must know before it can have links.
struct link_setup {
  std::string secret;                  ///< told at the join
  uint32_t cluster = 0;                ///< tag of all frames of this service
  std::string transport;               ///< as net::data_plane_options::transport
  std::string folder;                  ///< for sockets; empty: the temporary folder of the system
  std::shared_ptr<gpu::doorbell> bell; ///< of the engine whose streams wait for the links
  /// Addresses of the two ends of this worker's control connection: its own, and that of the
  /// control process as this host reaches it. Empty in the control process.
  std::string here{}, home{};
};

/// Makes the port of a process. Throws std::runtime_error with the reason when it cannot listen.
using link_port_maker = std::function<link_port(const link_setup&)>;

} // namespace lamella::actors
