/// Ids and the small values that everyone shares.
#pragma once

#include <cstdint>

namespace lamella::scheduler {

/// One client request. Counts up from 1 within a process.
enum class request_id : uint64_t {};

/// One sequence of a request: a choice of one of its prompts. Holds KV slots (a *holder*).
enum class sequence_id : uint64_t {};

/// A stream of iterations: a decode batch (0 .. n - 1) or a prefill worker (from prefill_streams
/// on).
enum class stream_id : uint32_t {};

constexpr uint32_t prefill_streams = 1u << 16;

/// Streams over which replicas hand a batch's context on (L-M21): context_streams + the batch.
constexpr uint32_t context_streams = 1u << 15;
constexpr bool is_context(uint32_t stream) {
  return stream >= context_streams && stream < prefill_streams;
}

/// Streams over which shards of an epoch pull KV of the epoch before, by the member that lends it.
constexpr uint32_t move_streams = 3u << 15;

/// Streams of a prefill worker's device that offer KV, one per shard: offer_streams + shard number.
constexpr uint32_t offer_streams = 1u << 17;

/// Streams between two members of an attention pool, by the lending member: member_streams + its
/// number.
constexpr uint32_t member_streams = 3u << 16;

/// The stream of a member's device that reads slots for parity checks.
constexpr uint32_t check_stream = 1u << 18;

/// A request's k-th sequence. At most 2^16 sequences per request.
constexpr sequence_id sequence_of(request_id request, uint32_t k) {
  return sequence_id{static_cast<uint64_t>(request) << 16 | k};
}
constexpr request_id request_of(sequence_id sequence) {
  return request_id{static_cast<uint64_t>(sequence) >> 16};
}
constexpr uint32_t index_of(sequence_id sequence) {
  return static_cast<uint32_t>(static_cast<uint64_t>(sequence) & 0xffff);
}

/// Consecutive slots holding consecutive positions.
struct slot_run {
  uint32_t first = 0;
  uint32_t length = 0;
  friend bool operator==(const slot_run&, const slot_run&) = default;
};

} // namespace lamella::scheduler
