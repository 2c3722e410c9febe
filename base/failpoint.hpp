/// Places where a test can make the program fail (reliability D1): compiled in, off until a flag
/// names them, and then as likely as it says. Off, a place costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella {

/// All failpoints, with the meaning of `error`; crash, hang and delay are the same everywhere.
enum class failpoint : uint8_t {
  worker_launch,     ///< a replica gets an iteration; error: the replica ends
  worker_token,      ///< the same, if a row has that token or sampled it
  worker_epoch_open, ///< a worker opens an epoch; error: it cannot
  shard_launch,      ///< a shard gets an iteration; error: the shard ends
  shard_token,       ///< the same, if a row has that token
  batch_commit,  ///< the tokens of an iteration arrive; error: the iteration failed and is retried
  prefill_chunk, ///< a chunk of prompts is launched; error: the prefill worker ends
  allocator_reserve, ///< slots are reserved; error: the allocator fails
  request_token,     ///< a token reaches its request; error: the request ends
  link_send,         ///< a frame leaves a worker process; error: it is lost
};

/// An `error` where the place has no way of its own to fail.
struct failpoint_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace failpoints {

/// One bit per place that may fire.
inline std::atomic<uint32_t> armed{0};

bool strike(failpoint where);
bool strike_at(failpoint where, std::span<const uint32_t> tokens);

} // namespace failpoints

inline bool failpoint_armed(failpoint where) {
  return (failpoints::armed.load(std::memory_order_relaxed) >> static_cast<unsigned>(where) & 1)
         != 0;
}

/// Passes a place: ends the process as SIGSEGV would, hangs the thread, delays it, or answers true:
/// then the caller fails in its own way. Thread-safe; the same hits fire in every run.
inline bool failpoint_hit(failpoint where) {
  return failpoint_armed(where) && failpoints::strike(where);
}

/// The same for the places that look for a token among `tokens`.
inline bool failpoint_hit(failpoint where, std::span<const uint32_t> tokens) {
  return failpoint_armed(where) && failpoints::strike_at(where, tokens);
}

/// The same, for a caller that can fail in no other way: throws failpoint_error instead of
/// answering true.
void failpoint_or_throw(failpoint where);
void failpoint_or_throw(failpoint where, std::span<const uint32_t> tokens);

/// Arms the place that `text` names: NAME=PROBABILITY:ACTION[:ARGUMENT], with the actions crash,
/// hang, delay (the argument is its milliseconds) and error; where a place looks for a token, the
/// argument is that token. Throws std::invalid_argument that says what is wrong. Before the first
/// place is passed.
void arm_failpoint(std::string_view text);

/// What arm_failpoint was called with, for the processes that this one starts.
const std::vector<std::string>& armed_failpoints();

/// "worker.launch, worker.token, ..."
std::string failpoint_names();

/// None is armed any more.
void disarm_failpoints();

} // namespace lamella
