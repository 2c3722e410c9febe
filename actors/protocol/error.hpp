/// Every way to fail between actors.
#pragma once

#include <caf/all.hpp>

#include <cstdint>

namespace lamella::actors {

/// Codes of the error category "lamella". 0 is "no error" and not used.
enum class ec : uint8_t {
  kv_exhausted = 1, ///< not enough free slots
  queue_full,       ///< too many requests wait
  queue_tokens,     ///< too many prompt tokens wait
  draining,         ///< the service is shutting down
  loading,          ///< the model is not loaded yet
  cancelled,        ///< by the client or the requester
  never_fits,       ///< more slots than the pool has
  aborted,          ///< the iteration was ended from outside
  deadline,         ///< a wait took too long
  device_lost,      ///< a device failed
  no_capacity,      ///< no replica, shard or batch to place it on
  join_denied,      ///< the proof of the shared secret is wrong
  join_refused,     ///< the worker does not fit the service, or joins too late
  links_failed,     ///< the data plane could not be connected
  nobody_there,     ///< the named seat has no worker
  link_cut,         ///< a link was cut: the peer process is gone or unreachable
  request_poisoned, ///< the request crashes the workers that serve it
  attempts_spent,   ///< retries of an iteration or prefill exhausted: the pipeline is rebuilt
  actor_failed,     ///< an actor failed with an exception
  attempts_silent,  ///< the same, one attempt timed out without a cause: links are rebuilt too
  rows_differ,      ///< digests of transferred KV differ
  resize_refused,   ///< the pool cannot have that size, or not now
  no_memory,        ///< memory has no room for the KV of the next epoch beside that of this one
  mask_refused,     ///< a token mask takes too much work: the request's format is at fault
};

/// The text of a code, for people.
const char* describe(ec code);

} // namespace lamella::actors

CAF_ERROR_CODE_ENUM(lamella::actors::ec, "lamella")

namespace lamella::actors {

/// The receiver has terminated: no retry can succeed before the pipeline is rebuilt. The launcher
/// of iterations then terminates with `peer_gone`; requests wait for the new pipeline.
inline bool peer_lost(const caf::error& reason) {
  return reason == caf::sec::request_receiver_down || reason == caf::sec::runtime_error
         || reason == ec::actor_failed;
}

/// The exit reason of an actor that met `peer_lost`: not its own fault.
inline caf::error peer_gone() { return caf::make_error(caf::sec::request_receiver_down); }

/// An iteration timed out or was aborted, and no device reported a failure: the peer may be slow or
/// hang, or a frame was lost.
inline bool is_silence(const caf::error& reason) {
  return reason == ec::deadline || reason == ec::aborted;
}

} // namespace lamella::actors
