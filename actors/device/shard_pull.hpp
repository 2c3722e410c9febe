/// An attention shard's side of a pull.
#pragma once

#include "actors/device/attention_shard_state.hpp"
#include "actors/protocol/pulls.hpp"
#include "gpu/runners/kv_transfer.hpp"

namespace lamella::actors {

/// Timeout of one side of a pull on its device, from its launch on, including earlier pulls on the
/// stream. Between members of a pool, all of their KV is transferred.
constexpr caf::timespan pull_deadline = std::chrono::seconds{20};
constexpr caf::timespan lend_deadline = std::chrono::minutes{10};

/// The slowest accepted link between members of a pool, in bytes per second.
constexpr uint64_t slowest_lending = 8 << 20;

/// Timeout of a transfer of `bytes` bytes between two members that do nothing else.
constexpr caf::timespan lend_limit(uint64_t bytes) {
  const auto seconds = std::chrono::seconds{5 + static_cast<int64_t>(bytes / slowest_lending)};
  return seconds < lend_deadline ? caf::timespan{seconds} : lend_deadline;
}

/// Enqueues the pull on the stream of its prefill worker; answered when the device is done.
caf::result<kv_moved> pull(shard_ptr self, const kv_pull& x);

/// The sending side of a transfer between two members of the pool (reliability A6).
caf::result<kv_moved> lend(shard_ptr self, const kv_offer& x);

/// The stream of a shard's device for a transfer. One transfer at a time: they share a stream per
/// direction, because a device has few.
stream_id stream_of_transfer(stream_id x);

/// The transfer of one side of a pull: `head_count` heads from `first_head` on of a row of
/// `row_bytes` bytes. Both sides match because `row_bytes` and the kind of the stream are equal.
gpu::transfer_launch transfer_of(stream_id stream, uint64_t epoch, uint64_t number,
                                 const std::vector<slot_run>& runs, uint32_t first_head,
                                 uint32_t head_count, uint64_t row_bytes);

/// Largest frame of a pull's link, in bytes, for rows of `row_bytes` bytes.
constexpr uint64_t pull_frame_bytes(uint64_t row_bytes) {
  return scheduler::piece_rows(row_bytes, scheduler::pull_piece_bytes) * row_bytes;
}

} // namespace lamella::actors
