#include "gpu/ring/rank_group.hpp"

#include "gpu/ring/device_ring.hpp"
#include "gpu/ring/ring_collective.hpp"

namespace lamella::gpu {

namespace {

/// A rank may be ahead of another one by a sum and the heads of a layer.
constexpr uint32_t slots_per_ring = 4;

} // namespace

std::vector<std::shared_ptr<const rank_group>>
make_rank_groups(std::span<const std::shared_ptr<device>> devices, uint64_t epoch,
                 uint64_t frame_bytes) {
  const auto ranks = static_cast<uint32_t>(devices.size());
  std::vector<std::vector<rank_link>> links(ranks, std::vector<rank_link>(ranks));
  ring_terms terms;
  terms.slots = slots_per_ring;
  terms.slot_bytes = slot_room(frame_bytes);
  terms.epoch = epoch;
  for (uint32_t from = 0; from < ranks; ++from)
    for (uint32_t to = 0; to < ranks; ++to) {
      if (from == to) continue;
      auto ring = make_device_ring(*devices[from], *devices[to], terms);
      links[from][to].to = std::move(ring.to);
      links[to][from].from = std::move(ring.from);
    }
  std::string why;
  const auto own = devices[0]->make_sums(devices, why);
  std::vector<std::shared_ptr<const rank_group>> groups;
  for (uint32_t r = 0; r < ranks; ++r) {
    auto group = std::make_shared<rank_group>(rank_group{r, ranks, links[r], nullptr, why});
    if (own.empty())
      group->sums = std::make_shared<ring_collective>(r, links[r], devices[r]->ops());
    else
      group->sums = own[r];
    groups.push_back(std::move(group));
  }
  return groups;
}

} // namespace lamella::gpu
