/// The channel between streams of two devices: rings of frames, no thread in between.
///
/// gpu/ declares the interface; net/ implements it for each transport.
#pragma once

#include "gpu/ring/frame.hpp"

#include <compare>
#include <span>
#include <stdexcept>
#include <string_view>

namespace lamella::gpu {

/// Identifies a frame. A receiver accepts only the tag that it expects (reliability A3).
struct frame_tag {
  uint64_t epoch = 0;
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint32_t layer = 0;
  frame_kind kind = frame_kind::q;
  uint64_t table_version = 0; ///< version of the slot table; equal on both sides
  friend auto operator<=>(const frame_tag&, const frame_tag&) = default; ///< in order of sending
};

struct frame {
  frame_tag tag;
  std::span<const std::byte> payload;
};

/// Why a channel is closed. The first reason stays.
enum class channel_state : uint8_t {
  open,
  closed,  ///< the peer closed it or is gone; frames that it sent can still be received
  aborted, ///< closed on this side
  revoked, ///< its epoch has ended
  stale,   ///< the peer is of another epoch, or not the expected one
  torn,    ///< a frame or a word of the peer fails its checks
  unread,  ///< the peer has read nothing from the wire for too long
};

std::string_view to_string(channel_state state);

/// The channel that a work waits for is closed: no frame can arrive.
class channel_ended final : public std::runtime_error {
public:
  explicit channel_ended(channel_state why);
  channel_state why() const { return why_; }

private:
  channel_state why_;
};

/// Common interface of both ends of a channel. Thread-safe.
class channel_end {
public:
  virtual ~channel_end() = default;

  virtual channel_state state() const = 0;

  /// Closes the channel for both sides and wakes their waiters. The peer sees `why`, or `closed`
  /// where the transport cannot carry the reason.
  virtual void end(channel_state why) = 0;
};

/// The sending end of a ring of frame slots. Used by one stream.
class channel_sender : public channel_end {
public:
  /// Memory for the next frame, 64-byte aligned; null while the receiver has no free slot, and when
  /// the channel is closed. `bytes` must not exceed slot_bytes(). Calls before commit return the
  /// same memory.
  virtual std::byte* reserve(size_t bytes) = 0;

  /// Makes the reserved frame visible to the receiver, after its bytes.
  virtual void commit(const frame_tag& tag) = 0;

  virtual size_t slot_bytes() const = 0;
};

/// The receiving end. Used by one stream.
class channel_receiver : public channel_end {
public:
  /// The frame `ahead` places behind the oldest one, or null while it has not arrived. Stays valid
  /// until release().
  virtual const frame* peek(size_t ahead) = 0;

  /// Frees the oldest frame's slot for the sender (a credit).
  virtual void release() = 0;

  /// The frame `ahead` places behind the oldest, if it is the expected one. Older frames are left
  /// over from aborted work and are dropped. Newer ones stay: then the work of the receiver is
  /// about to be aborted, and the frame is for its next one. Only the front is cleaned, so call
  /// with `ahead` = 0 first. Throws channel_ended when the frame can never arrive, and
  /// std::runtime_error when its payload is not `bytes` bytes.
  ///
  /// On a device with queues it returns at once: the wait and the header check are enqueued on the
  /// stream, and a missing frame ends the work.
  virtual const frame* receive(const frame_tag& expected, size_t bytes, size_t ahead = 0);

protected:
  /// receive() drops that frame, because it expects another one.
  virtual void on_drop(const frame_tag& found, const frame_tag& expected);
};

/// Memory for a frame of `bytes` bytes, or null while there is no credit. Throws channel_ended.
std::byte* reserve(channel_sender& to, size_t bytes);

} // namespace lamella::gpu
