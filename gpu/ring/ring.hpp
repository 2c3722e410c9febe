/// One direction of a channel as plain memory: what two processes, or a process and a device, map.
///
/// Plain C++17. A ring is [ring_control][slot 0][slot 1]…; a slot is a frame_header and room for
/// its payload. Both sides agree on shape and epoch before they map it; it contains no addresses.
///
///   sender                                       receiver
///   waits until sent - released < slots          waits until sent moves past what it has taken
///   writes payload and header of its next slot   checks a copy of the header, uses the payload
///   stores `sent` + 1 with release               stores `released` + 1 with release
///
/// Words are read with acquire (device code: relaxed loads, then one acquire fence) and written
/// whole. Both ends begin at slot 0 and step through the slots, so any number of slots will do and
/// a counter that wraps at 2^48 is harmless. Every wait also checks `ended` and a deadline.
#pragma once

#include "gpu/ring/frame.hpp"

namespace lamella::gpu {

/// A count of frames within an epoch: epoch:16 | counter:48.
using seqno = uint64_t;

constexpr int seqno_counter_bits = 48;
constexpr uint64_t seqno_counter_mask = (uint64_t{1} << seqno_counter_bits) - 1;

LAMELLA_HOST_DEVICE constexpr seqno make_seqno(uint64_t epoch, uint64_t counter) {
  return epoch << seqno_counter_bits | (counter & seqno_counter_mask);
}

LAMELLA_HOST_DEVICE constexpr uint64_t counter_of(seqno s) { return s & seqno_counter_mask; }

/// Whether two seqnos belong to the same epoch, as far as 16 bits can tell.
LAMELLA_HOST_DEVICE constexpr bool same_epoch(seqno a, seqno b) {
  return (a ^ b) >> seqno_counter_bits == 0;
}

/// The one after `s`, of the same epoch.
LAMELLA_HOST_DEVICE constexpr seqno after(seqno s, uint64_t frames = 1) {
  return (s & ~seqno_counter_mask) | ((s + frames) & seqno_counter_mask);
}

/// Frames from `older` to `newer`, of the same epoch; huge when they are in the wrong order.
LAMELLA_HOST_DEVICE constexpr uint64_t frames_between(seqno older, seqno newer) {
  return (newer - older) & seqno_counter_mask;
}

/// A word on a cache line of its own, to avoid false sharing.
struct alignas(64) ring_word {
  uint64_t value;
  uint64_t unused[7];
};

constexpr uint32_t ring_magic = 0x4c4d5231;

/// Written once by the creator of the ring; the peer compares it with the agreed terms.
struct alignas(64) ring_shape {
  uint32_t magic;
  uint32_t slots;      ///< >= 1
  uint64_t slot_bytes; ///< of payload, a multiple of 64
  seqno first;         ///< `sent` and `released` before the first frame
};

struct ring_control {
  ring_shape shape;
  ring_word sent;     ///< seqno after the last frame sent; written by the sender
  ring_word released; ///< seqno after the last released frame: the credit; written by the receiver
  ring_word ended;    ///< 0, or a channel_state; written by either side, the first one stays
};
static_assert(sizeof(ring_control) == 256 && alignof(ring_control) == 64);
static_assert(offsetof(ring_control, sent) == 64);
static_assert(offsetof(ring_control, released) == 128);
static_assert(offsetof(ring_control, ended) == 192);

/// One post of a stream to an adapter: a frame of the ring it fills, the credit for frames released
/// of the other ring, or both. Positions are offsets into the memory of a side.
struct ring_post {
  uint64_t from = 0, to = 0; ///< of the frame with its header: here, and at the peer
  uint32_t bytes = 0;        ///< 0: no frame
  uint64_t sent_at = 0;      ///< the peer's word behind it
  seqno sent = 0;
  uint64_t released_at = 0; ///< the peer's word of credit; 0: no credit is sent
  seqno released = 0;
};

/// Payload size of a slot for `bytes` bytes: whole cache lines.
LAMELLA_HOST_DEVICE constexpr uint64_t slot_room(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// From one slot's header to the next one's. `slot_bytes` as in ring_shape.
LAMELLA_HOST_DEVICE constexpr uint64_t slot_stride(uint64_t slot_bytes) {
  return sizeof(frame_header) + slot_bytes;
}

/// From the start of the ring to the header of a slot.
LAMELLA_HOST_DEVICE constexpr uint64_t slot_offset(uint64_t slot_bytes, uint64_t slot) {
  return sizeof(ring_control) + slot * slot_stride(slot_bytes);
}

/// Of the whole ring.
LAMELLA_HOST_DEVICE constexpr uint64_t ring_bytes(uint64_t slots, uint64_t slot_bytes) {
  return slot_offset(slot_bytes, slots);
}

} // namespace lamella::gpu
