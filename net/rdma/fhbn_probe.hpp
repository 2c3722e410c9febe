/// Which way between devices this host allows, and why not a better one.
///
/// Asked once when channels are made, and by people who wonder. Every step that failed says what
/// was missing and what would help. Nothing is left open or registered behind a probe.
#pragma once

#include "net/rdma/fhbn_library.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// From nothing to everything; names as in `net.transport`.
enum class rdma_tier {
  none,            ///< no usable adapter: shared memory or TCP
  verbs_staged,    ///< a CPU posts, payload through pinned host memory
  verbs_gpudirect, ///< a CPU posts, payload stays in GPU memory
  mlx5_proxy,      ///< the GPU builds work requests, a CPU thread rings
  fhbn,            ///< the GPU posts and rings
};
std::string_view name_of(rdma_tier tier);

struct probe_step {
  std::string name; ///< what was tried
  bool passed;
  std::string reason; ///< what was found, or what is missing and what would help
};

/// The highest tier whose parts are all there. Parts are not proof: only traffic is.
struct rdma_report {
  rdma_tier tier = rdma_tier::none;
  std::string device; ///< of the adapter that was looked at
  std::vector<probe_step> steps;
};

/// Looks at the first adapter with an active port, mlx5 ones first. Takes some 100 ms where there
/// is a GPU, else next to nothing. Throws nothing of its own.
rdma_report probe_rdma(const fhbn_library& library);

/// One line per step, for people.
std::string text_of(const rdma_report& report);

} // namespace lamella::net
