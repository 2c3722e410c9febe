/// What one side of a link over verbs keeps in memory, wherever its streams use it.
///
///   words    what the peer tells about the link         the peer's adapter writes
///   in       the ring that the peer fills               these two and the control
///   out      the ring that this side fills              words of the third
///
/// Both sides have the same layout, so that a place here names the like of it there.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring_end.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>

namespace lamella::net {

/// At the beginning.
struct landing_words {
  gpu::ring_word greeting;
  gpu::ring_word ended; ///< a channel_state: why the peer has ended the link
};

/// On the host, or on a device whose streams poll it there (GPUDirect). Then the host cannot read
/// it: what host and device tell each other lies in memory of the host that both map.
class link_memory {
public:
  /// Ordinary memory of the host. Throws std::bad_alloc.
  explicit link_memory(const gpu::ring_terms& rings);

  /// As gpu::device::make_adapter_memory, which may wait for the device, and throws as that does.
  /// Does not own the device: streams of it hold what they watch.
  link_memory(const std::shared_ptr<gpu::device>& device, const gpu::ring_terms& rings);

  link_memory(const link_memory&) = delete;
  link_memory& operator=(const link_memory&) = delete;

  const gpu::ring_terms& rings() const { return rings_; }
  bool on_device() const { return headers_ != nullptr; }
  const std::string& how() const { return how_; } ///< for logs: where frames lie

  /// From the beginning, on both sides.
  static constexpr uint64_t greeting_at = offsetof(landing_words, greeting);
  static constexpr uint64_t ended_at = offsetof(landing_words, ended);
  static constexpr uint64_t in_at = sizeof(landing_words);
  uint64_t out_at() const { return in_at + rings_.bytes(); }

  std::byte* base() const { return base_; }
  size_t bytes() const { return in_at + 2 * rings_.bytes(); }
  std::span<std::byte> landing() const { return {base_, out_at() + sizeof(gpu::ring_control)}; }
  std::span<std::byte> sending() const { return {base_ + out_at(), rings_.bytes()}; }
  int dma_buf() const { return dma_buf_; } ///< of all of it; -1: registered by address

  /// Control words as the host uses them. On a device only what this side writes lies there, and
  /// `ended`: the peer's seqnos and credits are the device's to read.
  gpu::ring_control* in() const { return in_; }
  gpu::ring_control* out() const { return out_; }

  /// Of a frame to be sent. On a device they lie apart from the payload, in `headers`.
  const gpu::frame_header& header(uint32_t slot) const;
  gpu::frame_header* headers() const { return headers_; }

  /// The peer's word. On a device a copy, while links are made: it may wait for the driver. 0 when
  /// the device is lost.
  uint64_t greeting() const;
  /// The peer's reason to end; 0 where it cannot be read without waiting for a device.
  uint64_t ended() const;

  std::atomic<uint64_t> posted{0}; ///< payload bytes handed to the adapter so far

private:
  const gpu::ring_terms rings_;
  std::weak_ptr<gpu::device> device_;
  std::shared_ptr<std::byte> memory_, words_;
  std::byte* base_;
  gpu::ring_control *in_, *out_;
  gpu::frame_header* headers_ = nullptr;
  int dma_buf_ = -1;
  std::string how_;
};

} // namespace lamella::net
