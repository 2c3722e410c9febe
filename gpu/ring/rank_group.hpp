/// The ranks of one tensor-parallel replica as one of them sees them (L-M03).
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/collective.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lamella::gpu {

/// Both directions between this rank and another one.
struct rank_link {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
};

/// What one rank has of its group, for one stream of launches.
struct rank_group {
  uint32_t rank = 0, ranks = 1;
  std::vector<rank_link> links; ///< by rank; its own is empty
  std::shared_ptr<collective> sums;
  std::string why_rings; ///< why sums go through the rings; empty where they do not
};

/// The groups of the ranks on these devices, in their order: rings between every two of them, and
/// sums by means of the devices' own or through these rings, with the same bytes. `frame_bytes`: of
/// the largest frame, which is a part of a sum or heads of the attention. Throws std::bad_alloc.
std::vector<std::shared_ptr<const rank_group>>
make_rank_groups(std::span<const std::shared_ptr<device>> devices, uint64_t epoch,
                 uint64_t frame_bytes);

} // namespace lamella::gpu
