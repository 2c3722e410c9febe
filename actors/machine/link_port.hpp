/// The data plane as the control plane uses it: an address to publish, and connected ends.
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

/// One end of a link, as requested.
struct link_order {
  link_side side = link_side::replica;
  net::link_key key;
  std::string peer; ///< address of the process at the other end
  uint64_t frame_bytes = 0;
  uint32_t frames = gpu::frames_per_link(1); ///< that it holds
  gpu::ring_identity self;
  std::optional<gpu::ring_identity> other{}; ///< the expected peer
  std::chrono::milliseconds timeout{10'000};
  /// The device whose streams use this side, where the port is `direct`; null: streams of the host.
  std::shared_ptr<gpu::device> device{};
};

/// State of a link; empty while it is not connected.
struct link_report {
  std::string transport; ///< its tier, named as in `net.transport`
  double rtt_us = 0;     ///< minimum of the last ten seconds; 0: no measurement
  uint64_t measured = 0; ///< round trips, since the link is up
};

/// The data plane as workers see it. Addresses are opaque: they are published at the join and
/// passed on.
struct link_port {
  std::string address; ///< where peers reach this process

  /// One end of a link to the process behind `peer`. Returns at once: streams wait until both sides
  /// are connected. Throws std::exception with the reason on failure.
  std::function<net::link_end(const link_order&)> open;

  /// Whether a device can have its side of a link in its own memory; else its frames are staged
  /// through a link of the host (net/link/staged_link.hpp).
  bool direct = false;

  /// May be empty.
  std::function<link_report(const net::link_key&)> report;

  /// Probes the process behind that address periodically, in both directions, for as long as the
  /// result is held. Throws std::exception with the reason. Empty: not supported.
  std::function<std::shared_ptr<const net::peer_reach>(const std::string& address)> watch;

  /// Fault injection: isolates the data plane for this time. May be empty.
  std::function<void(std::chrono::milliseconds)> isolate;

  /// Drops everything of that epoch; wakes waiters in `open` for it.
  std::function<void(uint64_t epoch)> close;
};

/// Configuration of the links of a process.
struct link_setup {
  std::string secret;                  ///< sent at the join
  uint32_t cluster = 0;                ///< tag of all frames of this service
  std::string transport;               ///< as net::data_plane_options::transport
  std::string folder;                  ///< for sockets; empty: the temporary folder of the system
  std::shared_ptr<gpu::doorbell> bell; ///< of the engine whose streams wait for the links
  /// Addresses of the two ends of this worker's control connection: its own, and that of the
  /// control process as this host reaches it. Empty in the control process.
  std::string here{}, home{};
  std::chrono::milliseconds reply_timeout{300}; ///< of probes of peers
};

/// Creates the port of a process. Throws std::runtime_error with the reason when it cannot listen.
using link_port_maker = std::function<link_port(const link_setup&)>;

} // namespace lamella::actors
