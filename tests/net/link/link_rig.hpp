/// Two ends of a link of every kind, and what tests do with them.
#pragma once

#include "tests/net/link/far_side.hpp"
#include "tests/net/rdma/soft_adapter.hpp"
#include "tests/net/rdma/soft_mlx5_adapter.hpp"

namespace lamella::tests {

/// What tests ask of transports between processes and threads of one host, where all is quick.
struct quick_tier {
  static constexpr size_t largest = 4 << 20;      ///< bytes of a frame
  static constexpr int rounds = 54;               ///< of filling a ring; 19 or more
  static constexpr uint64_t messages = 100'000;   ///< of a long exchange
  static constexpr uint64_t turns = 3'000;        ///< of two streams that wait for each other
  static void change(net::data_plane_options&) {} ///< of the near plane
};

struct in_process_tier : quick_tier {
  static constexpr const char* name = "in_process";
};
struct shm_tier : quick_tier {
  static constexpr const char* name = "shm";
  static std::unique_ptr<far_side> make_far(const scratch_folder& folder) {
    return std::make_unique<local_far>(name, folder);
  }
};
/// The near side is read by its plane's thread, the far one by its engine.
struct tcp_tier : quick_tier {
  static constexpr const char* name = "tcp";
  static std::unique_ptr<far_side> make_far(const scratch_folder& folder) {
    return std::make_unique<local_far>(name, folder);
  }
};

/// Both sides are read by engines.
struct attended_tcp_tier : tcp_tier {
  static void change(net::data_plane_options& o) {
    static gpu::host_engine engine{1, gpu::reference_operators()};
    o.bell = engine.bell();
  }
};

/// Adapters in software; the rig's two planes share one. Real ones: tests/rdma.
struct soft_verbs_tier : quick_tier {
  static constexpr const char* name = "verbs_staged";
  static void change(net::data_plane_options& o) {
    static const auto adapter = std::make_shared<soft_adapter>();
    o.adapter = adapter;
  }
  static std::unique_ptr<far_side> make_far(const scratch_folder& folder) {
    return std::make_unique<local_far>(name, folder, change);
  }
};

/// The same with queues and work requests of our own, which an mlx5 adapter in software reads.
struct soft_mlx5_tier : quick_tier {
  static constexpr const char* name = "verbs_staged";
  static void change(net::data_plane_options& o) {
    static const auto adapter = std::make_shared<soft_mlx5_adapter>();
    o.adapter = adapter;
  }
  static std::unique_ptr<far_side> make_far(const scratch_folder& folder) {
    return std::make_unique<local_far>(name, folder, change);
  }
};

/// A link of a tier; `near` has connected, `far` has accepted. In-process has one plane only.
template <class Tier> struct link_rig {
  explicit link_rig(net::link_terms t = {4, 4096, 0, {}}) : terms{t} {
    if constexpr (std::is_same_v<Tier, in_process_tier>)
      other = std::make_unique<local_far>(mine);
    else
      other = Tier::make_far(folder);
    open({1, 0, 0, 0});
  }

  void open(const net::link_key& key) {
    far = other->accept(key, terms);
    near = mine.plane->connect(other->address(), key, terms, timeout);
  }

  scratch_folder folder;
  net::link_terms terms;
  test_plane mine{Tier::name, folder, "near", Tier::change};
  std::unique_ptr<far_side> other;
  net::link_end near, far;
};

} // namespace lamella::tests
