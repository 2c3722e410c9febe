/// Memory of one side of a link over verbs, in host or device memory.
///
///   words    what the peer tells about the link         the peer's adapter writes
///   in       the ring that the peer fills               these two and the control
///   out      the ring that this side fills              words of the third
///
/// Both sides have the same layout, so that an offset is valid on both.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/ring_end.hpp"
#include "net/rdma/mlx5/send_queue.hpp"
#include "net/rdma/verbs.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>

namespace lamella::net {

/// At the beginning.
struct landing_words {
  gpu::ring_word greeting;
  gpu::ring_word ended; ///< a channel_state: the peer's close reason
};

/// Shared state of host and device on a queue that streams post into.
struct stream_queue_words {
  alignas(64) mlx5::send_queue birth; ///< of the queue, whole when `ready` is not 0
  alignas(64) uint64_t ready = 0;
  alignas(64) uint64_t published = 0;
};

/// On the host, or on a device whose streams poll it there (GPUDirect). Then the host cannot read
/// it: what host and device tell each other lies in memory of the host that both map.
class link_memory {
public:
  /// Ordinary memory of the host. Throws std::bad_alloc.
  explicit link_memory(const gpu::ring_terms& rings);

  /// As gpu::device::make_adapter_memory, which may wait for the device, and throws as that does.
  /// Does not own the device: streams of it hold what they watch. `stream_posts`: with room for a
  /// queue that they post into.
  link_memory(const std::shared_ptr<gpu::device>& device, const gpu::ring_terms& rings,
              bool stream_posts = false);

  link_memory(const link_memory&) = delete;
  link_memory& operator=(const link_memory&) = delete;

  const gpu::ring_terms& rings() const { return rings_; }
  bool on_device() const { return words_ != nullptr; }
  const std::string& how() const { return how_; } ///< for logs: location of the frames

  /// From the beginning, on both sides.
  static constexpr uint64_t greeting_at = offsetof(landing_words, greeting);
  static constexpr uint64_t ended_at = offsetof(landing_words, ended);
  static constexpr uint64_t in_at = sizeof(landing_words);
  uint64_t out_at() const { return in_at + rings_.bytes(); }

  std::byte* base() const { return base_; }
  size_t bytes() const { return in_at + 2 * rings_.bytes(); }
  std::span<std::byte> landing() const { return {base_, out_at() + sizeof(gpu::ring_control)}; }
  std::span<std::byte> sending() const { return {base_ + out_at(), rings_.bytes()}; }
  /// For an adapter's queue.
  verbs_memory registered() const {
    return {landing(), sending(), on_device() ? base_ : nullptr, dma_buf_};
  }

  /// Control words as the host uses them. On a device only what this side writes lies there, and
  /// `ended`: the peer's seqnos and credits are the device's to read.
  gpu::ring_control* in() const { return in_; }
  gpu::ring_control* out() const { return out_; }

  /// Of a frame to be sent. On a device they lie apart from the payload, in `headers`.
  const gpu::frame_header& header(uint32_t slot) const;
  gpu::frame_header* headers() const { return headers_; }

  /// Of a queue that streams post into; null without: mapped memory of the host, a place there for
  /// the queue itself, and the device's memory for the state that kernels keep.
  stream_queue_words* posting() const { return posting_; }
  std::byte* queue_place() const { return queue_place_; }
  std::byte* kept_queue() const { return base_ + kept_at(); }

  /// The peer's word. On a device a copy, while links are made: it may wait for the driver. 0 when
  /// the device is lost.
  uint64_t greeting() const;
  /// The peer's close reason; 0 where it cannot be read without waiting for a device.
  uint64_t ended() const;

  std::atomic<uint64_t> posted{
      0}; ///< payload bytes handed to the adapter, or put into streams, so far

private:
  uint64_t kept_at() const { return gpu::slot_room(bytes()); }

  const gpu::ring_terms rings_;
  std::weak_ptr<gpu::device> device_;
  std::shared_ptr<std::byte> memory_, words_;
  std::byte* base_;
  gpu::ring_control *in_, *out_;
  gpu::frame_header* headers_ = nullptr;
  stream_queue_words* posting_ = nullptr;
  std::byte* queue_place_ = nullptr;
  int dma_buf_ = -1;
  std::string how_;
};

} // namespace lamella::net
