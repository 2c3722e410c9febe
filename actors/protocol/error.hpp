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
  loading,          ///< the model is not there yet
  cancelled,        ///< by the client or the requester
  never_fits,       ///< more slots than the pool has
  aborted,          ///< the iteration was ended from outside
  deadline,         ///< a wait took too long
  device_lost,      ///< a device failed
  no_capacity,      ///< no replica, shard or batch to place it on
  join_denied,      ///< the worker does not know the secret
  join_refused,     ///< the worker is not the right one, or comes too late
  links_failed,     ///< the data plane could not be connected
  nobody_there,     ///< no worker sits in the seat that was named
  link_cut,         ///< a link ended: the process at its other end is gone or out of reach
  request_poisoned, ///< the request ends the workers that serve it
  attempts_spent,   ///< an iteration or a prompt failed as often as it may: the pipeline is rebuilt
  actor_failed,     ///< an exception ended an actor
  attempts_silent,  ///< the same, and of one attempt nobody has said why: the links are remade, too
  rows_differ,      ///< K and V that came are not what was sent
};

/// The text of a code, for people.
const char* describe(ec code);

} // namespace lamella::actors

CAF_ERROR_CODE_ENUM(lamella::actors::ec, "lamella")

namespace lamella::actors {

/// The actor asked has ended: no attempt can succeed before the pipeline is rebuilt. Who launches
/// iterations then ends as well, as `peer_gone`; requests wait for the new pipeline.
inline bool peer_lost(const caf::error& reason) {
  return reason == caf::sec::request_receiver_down || reason == caf::sec::runtime_error
         || reason == ec::actor_failed;
}

/// Why who has met `peer_lost` ends: for no fault of its own.
inline caf::error peer_gone() { return caf::make_error(caf::sec::request_receiver_down); }

/// An iteration was given up and no device has said that it failed: the other end may be slow, or
/// hang, or a frame was lost.
inline bool is_silence(const caf::error& reason) {
  return reason == ec::deadline || reason == ec::aborted;
}

} // namespace lamella::actors
