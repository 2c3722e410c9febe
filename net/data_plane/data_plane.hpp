/// The data plane of a process: creates the links of all its devices.
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
  std::string advertise; ///< host name or address by which peers reach `listen`; empty: the same
  /// The control process's host as this process reaches it: the host of a peer that listens on all
  /// addresses and publishes none. Empty: this host.
  std::string home;
  host_lookup names = system_lookup; ///< resolves peers given by name
  std::string secret;                ///< shared by all members; at least 16 bytes
  uint32_t cluster = 0;              ///< tag in every frame; peers of another cluster are rejected
  /// Transport of connect(): auto, or the name of a link_transport. With verbs_gpudirect,
  /// mlx5_proxy and fhbn, sides that pass a device have their rings in its memory, others in host
  /// memory.
  std::string transport = "auto";
  /// RDMA device of links to other hosts; null: the first of this machine with an active port.
  std::shared_ptr<verbs_device> adapter;
  std::shared_ptr<gpu::doorbell> bell;             ///< of this process's engine; may be null
  std::function<void(const link_event&)> on_event; ///< on the plane's own thread; must not block
  std::chrono::milliseconds handshake{5'000};      ///< timeout of authentication
  std::chrono::milliseconds early{
      30'000}; ///< timeout of accept() after a peer that connected first
  std::chrono::milliseconds unread{
      5'000}; ///< timeout after which a peer that reads nothing is cut off
  std::chrono::milliseconds measure_every{1'000}; ///< interval of round-trip measurements
  std::chrono::milliseconds greeting{
      4'000}; ///< for a test word through RDMA adapters: longer than their retries
  /// Time for pending writes of adapters when a link or the plane closes.
  std::chrono::milliseconds last_writes{1'000};
  reach_pace asking{};       ///< probe intervals of watched peers
  size_t strangers_max = 64; ///< limit of unauthenticated connections
  /// Beyond that limit, time after which one without a good hello makes room for the next, and one
  /// without a proof after its hello. Each wait of so long lets in `strangers_max` more.
  std::chrono::milliseconds silence{500};
  size_t early_max = 1'024; ///< limit of links that arrived before accept()
};

/// Creates links in both roles and closes them with their epoch. Thread-safe.
///
/// connect() and accept() return at once with usable ends: a sender has no credit and a receiver no
/// frame until both sides are connected, so that streams wait for streams and no actor waits for a
/// socket. A failure closes the channels as `closed`, with the reason as an event.
///
/// Peers prove knowledge of the secret (HMAC-SHA256 over both sides' nonces) before any other
/// message is accepted. Descriptors are passed only to processes of the same user (SO_PEERCRED).
class data_plane {
public:
  /// Throws std::invalid_argument for invalid options, std::system_error when it cannot listen.
  explicit data_plane(data_plane_options options);

  /// Closes all links.
  ~data_plane();

  data_plane(const data_plane&) = delete;
  data_plane& operator=(const data_plane&) = delete;

  /// Published to peers for their connect(): the process, its host and its listeners.
  const std::string& address() const;

  /// This side's end of a link to the process that published `address`, over the fastest transport
  /// that works: in process, shared memory on the same host, RDMA adapters where a test word from
  /// each side arrives at the other, TCP. A previous link of the same key on this side is closed.
  /// Throws std::invalid_argument for terms out of range or an invalid address, gpu::channel_ended
  /// (revoked) when the epoch is closed.
  ///
  /// `device`: the device whose streams use this side, for transports with rings in device memory;
  /// exceptions of direct_link pass through. Null, and with any other transport: streams of the
  /// host.
  link_end connect(const std::string& address, const link_key& key, const link_terms& terms,
                   std::chrono::milliseconds timeout, std::shared_ptr<gpu::device> device = {});

  /// This side's end of a link that the peer connects, before or after this call. Throws like
  /// connect().
  link_end accept(const link_key& key, const link_terms& terms, std::chrono::milliseconds timeout,
                  std::shared_ptr<gpu::device> device = {});

  /// Probes the process that published `address` for as long as the result is held, over a
  /// connection of its own on the path of links: whether each of the two reaches the other. Throws
  /// std::invalid_argument for an invalid address.
  std::shared_ptr<const peer_reach> watch(const std::string& address);

  /// Fault injection: for this time the plane sends no probe, no reply, and creates no link.
  /// Existing links are not affected (net/link/faulty_sender.hpp).
  void isolate(std::chrono::milliseconds how_long);

  /// Checks early that an address can be listened on. Throws as the constructor does.
  static void try_listen(const std::string& address);

  /// Revokes all links of this epoch; later attempts to create one are rejected.
  void end_epoch(uint64_t epoch);

  struct impl;

private:
  std::shared_ptr<impl> impl_;
};

} // namespace lamella::net
