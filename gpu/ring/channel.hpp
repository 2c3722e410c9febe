/// The port through which streams of two devices meet: rings of frames, no thread in between.
///
/// gpu/ says what it needs; net/ fills it for each transport.
#pragma once

#include "gpu/ring/frame.hpp"

#include <compare>
#include <span>
#include <stdexcept>
#include <string_view>

namespace lamella::gpu {

/// What a frame belongs to. A receiver takes only what it expects (reliability A3).
struct frame_tag {
  uint64_t epoch = 0;
  uint64_t iteration = 0;
  uint32_t attempt = 0;
  uint32_t layer = 0;
  frame_kind kind = frame_kind::q;
  uint64_t table_version = 0; ///< of the slot table it was made with: both sides' is the same
  friend auto operator<=>(const frame_tag&, const frame_tag&) = default; ///< in order of sending
};

struct frame {
  frame_tag tag;
  std::span<const std::byte> payload;
};

/// Why a channel carries nothing more. The first reason stays.
enum class channel_state : uint8_t {
  open,
  closed,  ///< the other side ended it or is gone; what it had sent can still be taken
  aborted, ///< ended on this side
  revoked, ///< its epoch has ended
  stale,   ///< the other side speaks of another epoch, or is not who it is to be
  torn,    ///< a frame or a word of the other side fails its checks
  unread,  ///< the other side has taken nothing off the wire for too long
};

std::string_view to_string(channel_state state);

/// The channel that work waits for has ended: nothing it waits for can come.
class channel_ended final : public std::runtime_error {
public:
  explicit channel_ended(channel_state why);
  channel_state why() const { return why_; }

private:
  channel_state why_;
};

/// What both ends of a channel have. Thread-safe.
class channel_end {
public:
  virtual ~channel_end() = default;

  virtual channel_state state() const = 0;

  /// Ends the channel for both sides and wakes whoever waits for it. The other side sees `why`, or
  /// `closed` where the transport cannot tell.
  virtual void end(channel_state why) = 0;
};

/// The sending end of a ring of slots. One stream uses it.
class channel_sender : public channel_end {
public:
  /// Memory for the next frame, 64-byte aligned, or null while the receiver has no slot free and
  /// when the channel has ended.
  /// `bytes` must not exceed slot_bytes(). Asking again before commit gives the same memory.
  virtual std::byte* reserve(size_t bytes) = 0;

  /// Makes the reserved frame visible to the receiver, after its bytes.
  virtual void commit(const frame_tag& tag) = 0;

  virtual size_t slot_bytes() const = 0;
};

/// The receiving end. One stream uses it.
class channel_receiver : public channel_end {
public:
  /// The frame `ahead` places behind the oldest one, or null while it has not arrived. Stays valid
  /// until it is released.
  virtual const frame* peek(size_t ahead) = 0;

  /// Gives the oldest frame's slot back to the sender.
  virtual void release() = 0;

  /// The frame `ahead` places behind the oldest, if it is the expected one. Older frames are
  /// left-overs of aborted work: they are dropped. Newer ones stay: then it is the receiver whose
  /// work is about to be aborted, and the frame is for what it runs next. Only the front is
  /// cleaned, so ask for `ahead` = 0 first. Throws channel_ended when it can never come, and
  /// std::runtime_error when its payload is not of `bytes` bytes.
  ///
  /// On a device with queues the answer comes at once: the wait and the check of the header are put
  /// into the stream's queue, and a frame that does not come ends the work.
  virtual const frame* receive(const frame_tag& expected, size_t bytes, size_t ahead = 0);

protected:
  /// receive() drops that frame, because it expects another one.
  virtual void on_drop(const frame_tag& found, const frame_tag& expected);
};

/// Memory for a frame of `bytes` bytes, or null while there is no credit. Throws channel_ended.
std::byte* reserve(channel_sender& to, size_t bytes);

} // namespace lamella::gpu
