#include "actors/protocol/error.hpp"

namespace lamella::actors {

const char* describe(ec code) {
  switch (code) {
  case ec::kv_exhausted:
    return "not enough free KV slots";
  case ec::queue_full:
    return "too many requests are waiting";
  case ec::queue_tokens:
    return "too many prompt tokens are waiting";
  case ec::draining:
    return "the service is shutting down";
  case ec::loading:
    return "the model is being loaded";
  case ec::cancelled:
    return "cancelled";
  case ec::never_fits:
    return "needs more KV slots than the pool has";
  case ec::aborted:
    return "the iteration was aborted";
  case ec::deadline:
    return "the deadline has passed";
  case ec::device_lost:
    return "a device was lost";
  case ec::no_capacity:
    return "no capacity";
  case ec::join_denied:
    return "the proof of the shared secret is wrong";
  case ec::join_refused:
    return "the worker is refused";
  case ec::links_failed:
    return "the data plane could not be connected";
  case ec::nobody_there:
    return "nobody sits there";
  case ec::request_poisoned:
    return "the request ends the workers that serve it";
  case ec::link_cut:
    return "a link to another device was cut";
  case ec::attempts_spent:
    return "it failed as often as it may";
  case ec::actor_failed:
    return "an exception ended an actor";
  case ec::attempts_silent:
    return "nothing came in time, as often as it may";
  case ec::rows_differ:
    return "K and V that came are not what was sent";
  }
  return "unknown error";
}

} // namespace lamella::actors
