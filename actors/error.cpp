#include "actors/error.hpp"

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
  }
  return "unknown error";
}

} // namespace lamella::actors
