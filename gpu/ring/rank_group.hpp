/// The ranks of one tensor-parallel replica, from the view of one rank (L-M03).
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/collective.hpp"
#include "gpu/ring/rank_link.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lamella::gpu {

/// The group as held by one rank, for one stream of launches.
struct rank_group {
  uint32_t rank = 0, ranks = 1;
  std::vector<rank_link> links; ///< by rank; its own is empty
  std::shared_ptr<collective> sums;
  std::string why_rings; ///< why all-reduce goes through the rings; empty where it does not
};

/// The groups of the ranks on these devices, in order: rings between all pairs, and all-reduce by
/// the devices' own means or through these rings, with the same bytes. `frame_bytes`: of the
/// largest frame, which is a partial sum or attention heads. Throws std::bad_alloc.
std::vector<std::shared_ptr<const rank_group>>
make_rank_groups(std::span<const std::shared_ptr<device>> devices, uint64_t epoch,
                 uint64_t frame_bytes);

} // namespace lamella::gpu
