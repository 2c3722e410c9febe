/// Where the links of a process begin: one per process, for all its devices.
#pragma once

#include "net/data_plane/peer_reach.hpp"
#include "net/http/client/host_lookup.hpp"
#include "net/link/link.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace lamella::gpu {
class device;
}

namespace lamella::net {

class verbs_device;

struct data_plane_options {
  std::string unix_path; ///< socket for peers of this host; empty: none, and no shm
  std::string listen;    ///< ADDRESS:PORT for peers of other hosts, port 0: any; empty: none
  std::string advertise; ///< host name or address by which others reach `listen`; empty: the same
  /// The control process's host as this process reaches it: where a peer is that listens on all
  /// addresses of its host and tells none. Empty: this host.
  std::string home;
  host_lookup names = system_lookup; ///< of peers that are told by name
  std::string secret;                ///< bytes that all members know; at least 16
  uint32_t cluster = 0;              ///< tag in every frame; peers of another cluster are refused
  /// What connect() may use: auto, or the name of a link_transport. With verbs_gpudirect,
  /// mlx5_proxy and fhbn, sides that name a device have their rings in its memory, others in the
  /// host's.
  std::string transport = "auto";
  /// Which links to other hosts may use; null: the first of this machine that has an active port.
  std::shared_ptr<verbs_device> adapter;
  std::shared_ptr<gpu::doorbell> bell;             ///< of this process's engine; may be null
  std::function<void(const link_event&)> on_event; ///< on the plane's own thread; must not block
  std::chrono::milliseconds handshake{5'000};      ///< for a stranger to prove itself
  std::chrono::milliseconds early{30'000}; ///< for accept() to follow a peer that came first
  std::chrono::milliseconds unread{5'000}; ///< a peer that reads nothing for so long is cut off
  std::chrono::milliseconds measure_every{1'000}; ///< round trips of links that stand
  std::chrono::milliseconds greeting{
      4'000}; ///< for a word through RDMA adapters: longer than they try
  /// For what adapters have still to write when a link ends, or all of them with the plane.
  std::chrono::milliseconds last_writes{1'000};
  reach_pace asking{};       ///< of peers that are watched
  size_t strangers_max = 64; ///< connections that have not proved themselves
  size_t early_max = 1'024;  ///< links that have arrived before accept()
};

/// Makes links in both roles and ends them with their epoch. Thread-safe.
///
/// Both calls return at once with ends that can be used at once: a sender has no credit and a
/// receiver no frame until the two sides have met, so that streams wait for streams and no actor
/// waits for a socket. What fails ends the channels as `closed`, with the reason as an event.
///
/// Peers prove that they know the secret (HMAC-SHA256 over both sides' nonces) before anything of
/// them is believed. Descriptors go only to processes of the same user (SO_PEERCRED).
class data_plane {
public:
  /// Throws std::invalid_argument for options that make no sense, std::system_error when it cannot
  /// listen.
  explicit data_plane(data_plane_options options);

  /// Ends all links.
  ~data_plane();

  data_plane(const data_plane&) = delete;
  data_plane& operator=(const data_plane&) = delete;

  /// To be told to peers, for their connect(). Names the process, its host and where it listens.
  const std::string& address() const;

  /// This side's end of a link to the process that published `address`, by the best way there is:
  /// in the same process, through shared memory on the same host, through RDMA adapters where a
  /// word from each side arrives at the other, through TCP. A link of the same key that this side
  /// had before is ended. Throws std::invalid_argument for terms out of range or
  /// an address that is none, gpu::channel_ended (revoked) when the epoch is over.
  ///
  /// `device`: whose streams use this side, where the transport is one of those: its rings are
  /// made in memory of the device that an adapter reaches, and what direct_link throws is thrown
  /// here. Null, and with any other transport:
  /// streams of the host.
  link_end connect(const std::string& address, const link_key& key, const link_terms& terms,
                   std::chrono::milliseconds patience, std::shared_ptr<gpu::device> device = {});

  /// This side's end of a link that the other side connects, before or after. Throws like
  /// connect().
  link_end accept(const link_key& key, const link_terms& terms, std::chrono::milliseconds patience,
                  std::shared_ptr<gpu::device> device = {});

  /// Asks the process that published `address` again and again, for as long as the result is held,
  /// over a connection of its own that takes the way of links: whether each of the two hears the
  /// other. Throws std::invalid_argument for an address that is none.
  std::shared_ptr<const peer_reach> watch(const std::string& address);

  /// An injury: for so long it asks nobody, answers nobody, and makes no link. Those that stand are
  /// left alone (net/link/flawed_sender.hpp).
  void isolate(std::chrono::milliseconds how_long);

  /// Whether an address can be listened on, before anything depends on it. Throws as the
  /// constructor does.
  static void try_listen(const std::string& address);

  /// Revokes all links of this epoch and of those before it; later ones of them are refused.
  void end_epoch(uint64_t epoch);

  struct impl;

private:
  std::shared_ptr<impl> impl_;
};

} // namespace lamella::net
