/// An attention shard's side of a pull.
#pragma once

#include "actors/device/attention_shard.hpp"
#include "gpu/runners/kv_transfer.hpp"

namespace lamella::actors {

/// For one side of a pull on its device, from its launch on; those before it on the stream
/// included. Between members of a pool it is all of their KV that moves.
constexpr caf::timespan pull_deadline = std::chrono::seconds{20};
constexpr caf::timespan lend_deadline = std::chrono::minutes{10};

/// The slowest link between members of a pool that is worth waiting for, in bytes a second.
constexpr uint64_t slowest_lending = 8 << 20;

/// For one member to lend so many bytes to another one, which do nothing else meanwhile.
constexpr caf::timespan lend_limit(uint64_t bytes) {
  const auto seconds = std::chrono::seconds{5 + static_cast<int64_t>(bytes / slowest_lending)};
  return seconds < lend_deadline ? caf::timespan{seconds} : lend_deadline;
}

/// Puts the pull onto the stream of its prefill worker; answered when the device has run it.
caf::result<kv_moved> pull(shard_ptr self, const kv_pull& x);

/// The side of a member of the pool that lends its KV to another one (reliability A6).
caf::result<kv_moved> lend(shard_ptr self, const kv_offer& x);

/// The stream of a shard's device that a transfer runs on. One member at a time lends to another
/// one: they share a stream for each direction, because a device has few.
stream_id stream_of_transfer(stream_id x);

/// What one side of a pull makes of its slots: `head_count` heads from `first_head` on of a row of
/// `row_bytes` bytes. The two sides agree because the bytes of a row do.
gpu::transfer_launch transfer_of(uint64_t epoch, uint64_t number, const std::vector<slot_run>& runs,
                                 uint32_t first_head, uint32_t head_count, uint64_t row_bytes);

/// Largest frame of a pull's link, in bytes, for rows of so many bytes.
constexpr uint64_t pull_frame_bytes(uint64_t row_bytes) {
  return scheduler::piece_rows(row_bytes, scheduler::pull_piece_bytes) * row_bytes;
}

} // namespace lamella::actors
