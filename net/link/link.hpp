/// Links between two devices: a channel each way, made for one epoch.
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
  std::atomic<uint64_t> epoch{0};   ///< of another epoch
  std::atomic<uint64_t> attempt{0}; ///< left over of an iteration, or an attempt, that was given up
  std::atomic<uint64_t> duplicate{0}; ///< of the same attempt, and there before
};

/// What one device needs to talk to another: a sender and a receiver.
struct link_end {
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
  /// Payload bytes of the frames committed so far, or of those handed to the adapter where a device
  /// fills the rings itself; null where nobody counts. Any thread.
  std::shared_ptr<const std::atomic<uint64_t>> sent{};
  /// What `from` has dropped; null where nobody counts.
  std::shared_ptr<const frame_drops> dropped{};
};

/// Which link: an epoch's channels are never used in another one (reliability A3).
struct link_key {
  uint64_t epoch = 0;
  uint32_t stream = 0;
  uint32_t replica = 0;
  uint32_t shard = 0;
  auto operator<=>(const link_key&) const = default;
};

/// For messages: "epoch 7, stream 0, replica 1, shard 2".
std::string to_string(const link_key& key);

/// What both sides of a link must agree on, and who this side is.
struct link_terms {
  uint32_t slots = 4;         ///< per direction; 1 .. 1024
  uint64_t slot_bytes = 0;    ///< of payload; up to 1 GiB, rounded up to whole lines
  uint64_t first_counter = 0; ///< of both directions; tests begin shortly before it wraps
  gpu::ring_identity self;
  /// Who the other side must be; nothing: nobody in particular.
  std::optional<gpu::ring_identity> peer{};
};

/// How a link's bytes travel; named as in the option net.transport.
enum class link_transport : uint8_t {
  in_process,
  shm,
  tcp,
  verbs_staged,
  verbs_gpudirect, ///< this side's rings lie in memory of its device
  mlx5_proxy,      ///< and its streams post, for which the host rings the adapter's bell
  fhbn,            ///< and they ring themselves
};

std::string_view to_string(link_transport x);

/// The one of this name.
std::optional<link_transport> transport_of(std::string_view name);

/// Carried by RDMA adapters.
constexpr bool over_verbs(link_transport x) { return x >= link_transport::verbs_staged; }

/// With rings in memory of this side's device, where it has one.
constexpr bool in_device_memory(link_transport x) { return x >= link_transport::verbs_gpudirect; }

/// Something happened to a link. One line for a log.
struct link_event {
  enum class kind : uint8_t { up, refused, ended };
  kind what = kind::up;
  link_key key;
  bool connecting = false; ///< the side that called connect()
  link_transport transport = link_transport::in_process;
  std::string text; ///< why this transport, why refused, why ended
  /// Of the proofs before the first frame, over the link's socket, with the threads of both planes;
  /// 0 within a process.
  std::chrono::nanoseconds round_trip{0};
  /// That one, and what is measured from now on while the link stands; null where there is no link.
  std::shared_ptr<const round_trips> trips{};
};

} // namespace lamella::net
