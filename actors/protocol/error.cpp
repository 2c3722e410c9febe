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
    return "the worker was rejected";
  case ec::links_failed:
    return "the data plane could not be connected";
  case ec::nobody_there:
    return "no worker in that seat";
  case ec::request_poisoned:
    return "the request crashes the workers that serve it";
  case ec::link_cut:
    return "a link to another device was cut";
  case ec::attempts_spent:
    return "retries exhausted";
  case ec::actor_failed:
    return "an actor failed with an exception";
  case ec::attempts_silent:
    return "timed out on every attempt, no device reported a failure";
  case ec::rows_differ:
    return "KV transfer: digests differ";
  case ec::resize_refused:
    return "the pool is not changed";
  case ec::no_memory:
    return "not enough memory";
  case ec::mask_refused:
    return "the output cannot be constrained to its format";
  }
  return "unknown error";
}

} // namespace lamella::actors
