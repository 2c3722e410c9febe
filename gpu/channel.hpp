/// The port through which streams of two devices meet: rings of frames, no thread in between.
///
/// gpu/ says what it needs; net/ fills it for each transport.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lamella::gpu {

enum class frame_kind : uint8_t { q, kv, attention };

/// What a frame belongs to. A receiver takes only what it expects (reliability A3).
struct frame_tag {
  uint64_t epoch = 0;
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint32_t layer = 0;
  frame_kind kind = frame_kind::q;
  friend auto operator<=>(const frame_tag&, const frame_tag&) = default; ///< in order of sending
};

struct frame {
  frame_tag tag;
  std::span<const std::byte> payload;
};

/// The sending end of a ring of slots. One stream uses it.
class channel_sender {
public:
  virtual ~channel_sender() = default;

  /// Memory for the next frame, 64-byte aligned, or null while the receiver has no slot free.
  /// `bytes` must not exceed slot_bytes(). Asking again before commit gives the same memory.
  virtual std::byte* reserve(size_t bytes) = 0;

  /// Makes the reserved frame visible to the receiver, after its bytes.
  virtual void commit(const frame_tag& tag) = 0;

  virtual size_t slot_bytes() const = 0;
};

/// The receiving end. One stream uses it.
class channel_receiver {
public:
  virtual ~channel_receiver() = default;

  /// The frame `ahead` places behind the oldest one, or null while it has not arrived. Stays valid
  /// until it is released.
  virtual const frame* peek(size_t ahead) = 0;

  /// Gives the oldest frame's slot back to the sender.
  virtual void release() = 0;
};

/// The frame `ahead` places behind the oldest, if it is the expected one. Older frames are
/// left-overs of aborted work: they are dropped. Newer ones stay: then it is the receiver whose
/// work is about to be aborted, and the frame is for what it runs next. Only the front is cleaned,
/// so ask for `ahead` = 0 first.
inline const frame* receive(channel_receiver& from, const frame_tag& expected, size_t ahead = 0) {
  while (const auto* next = from.peek(ahead)) {
    if (next->tag == expected) return next;
    if (ahead != 0 || next->tag > expected) return nullptr;
    from.release();
  }
  return nullptr;
}

} // namespace lamella::gpu
