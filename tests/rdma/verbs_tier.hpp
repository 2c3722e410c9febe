/// The verbs tier as the conformance suite sees it: an adapter here, the far side elsewhere.
#pragma once

#include "tests/net/link/link_rig.hpp"
#include "tests/rdma/remote_far.hpp"

#include <cstdlib>

namespace lamella::tests {

/// Of this end and the other one, as the guests' first program gives them.
inline std::string rdma_address(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) throw std::runtime_error{std::string{variable} + " is not set"};
  return value;
}

/// Counts are small: adapter and processor are emulated.
struct verbs_tier {
  static constexpr const char* name = "verbs_staged";
  static constexpr size_t largest = 256 << 10;
  static constexpr int rounds = 21;
  static constexpr uint64_t messages = 500;
  static constexpr uint64_t turns = 100;
  static void change(net::data_plane_options& o) { o.listen = rdma_address("RDMA_SELF") + ":0"; }
  static std::unique_ptr<far_side> make_far(const scratch_folder&) {
    return std::make_unique<remote_far>(rdma_address("RDMA_PEER"), name);
  }
};

} // namespace lamella::tests
