/// Links between two devices: a channel each way, created for one epoch.
#pragma once

#include "gpu/ring/ring_end.hpp"

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

class round_trips;

/// Frames that a receiver has dropped, by reason (reliability A3). Written by its stream, read by
/// any thread.
struct frame_drops {
  std::atomic<uint64_t> epoch{0};     ///< of another epoch
  std::atomic<uint64_t> attempt{0};   ///< left over from an aborted iteration or attempt
  std::atomic<uint64_t> duplicate{0}; ///< of the same attempt, received before
};

/// One device's end of a link: a sender and a receiver.
struct link_end {
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
  /// Payload bytes of committed frames, or of frames handed to the adapter where a device fills the
  /// rings itself; null where not counted. Thread-safe.
  std::shared_ptr<const std::atomic<uint64_t>> sent{};
  /// Frames that `from` dropped; null where not counted.
  std::shared_ptr<const frame_drops> dropped{};
};

/// Identifies a link. The channels of an epoch are never used in another one (reliability A3).
struct link_key {
  uint64_t epoch = 0;
  uint32_t stream = 0;
  uint32_t replica = 0;
  uint32_t shard = 0;
  auto operator<=>(const link_key&) const = default;
};

/// For messages: "epoch 7, stream 0, replica 1, shard 2".
std::string to_string(const link_key& key);

/// Terms that both sides of a link must agree on, and the identity of this side.
struct link_terms {
  uint32_t slots = 4;         ///< per direction; 1 .. 1024
  uint64_t slot_bytes = 0;    ///< of payload; up to 1 GiB, rounded up to whole lines
  uint64_t first_counter = 0; ///< of both directions; tests start shortly before it wraps
  gpu::ring_identity self;
  /// The expected peer; nothing: not checked.
  std::optional<gpu::ring_identity> peer{};
};

/// The transport of a link; named as in the option net.transport.
enum class link_transport : uint8_t {
  in_process,
  shm,
  tcp,
  verbs_staged,
  verbs_gpudirect, ///< this side's rings are in memory of its device
  mlx5_proxy,      ///< and its streams post; the host rings the adapter's doorbell
  fhbn,            ///< and its streams also ring the doorbell
};

std::string_view to_string(link_transport x);

/// The transport of this name.
std::optional<link_transport> transport_of(std::string_view name);

/// Carried by RDMA adapters.
constexpr bool over_verbs(link_transport x) { return x >= link_transport::verbs_staged; }

/// Whether rings are in memory of this side's device, where it has one.
constexpr bool in_device_memory(link_transport x) { return x >= link_transport::verbs_gpudirect; }

/// An event of a link: one line for the log.
struct link_event {
  enum class kind : uint8_t { up, refused, ended };
  kind what = kind::up;
  link_key key;
  bool connecting = false; ///< the side that called connect()
  link_transport transport = link_transport::in_process;
  std::string text; ///< why this transport, why refused, why ended
  /// Round trip of the handshake over the link's socket, including the threads of both planes; 0
  /// within a process.
  std::chrono::nanoseconds round_trip{0};
  /// That round trip and later measurements while the link is up; null where there is no link.
  std::shared_ptr<const round_trips> trips{};
};

} // namespace lamella::net
