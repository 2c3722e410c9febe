/// May a worker take part? Bits are promised within one version, model, kernel set and shape only
/// (decision 29), so whoever differs is told what and sent away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::scheduler {

/// What decides about the bits, on either side of a join.
struct identity {
  std::string version;       ///< of the program
  std::string kernels;       ///< kernel set that runs
  std::string shapes;        ///< layers, heads, element types, in words
  uint64_t model_digest = 0; ///< of the weights file
  bool with_weights = true;  ///< an attention shard has none: its digest is not looked at
};

/// Every difference with both values, in one line; nothing when there is none.
std::optional<std::string> refuse_worker(const identity& service, const identity& worker);

} // namespace lamella::scheduler
