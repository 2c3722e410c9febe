/// Compatibility of a joining worker. Bit-exactness holds only within one version, model, kernel
/// set and shape (decision 29), so a worker that differs is rejected with the differences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::scheduler {

/// Properties that determine the bits of results, compared at a join.
struct identity {
  std::string version;       ///< of the program
  std::string kernels;       ///< kernel set in use
  std::string shapes;        ///< layers, heads, element types, in words
  uint64_t model_digest = 0; ///< of the weights file
  bool with_weights = true;  ///< false for an attention shard: its digest is ignored
};

/// Every difference with both values, in one line; nothing when there is none.
std::optional<std::string> refuse_worker(const identity& service, const identity& worker);

} // namespace lamella::scheduler
