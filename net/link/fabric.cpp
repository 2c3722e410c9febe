#include "net/link/fabric.hpp"

#include "gpu/ring/device_ring.hpp"

namespace lamella::net {

link_pair make_link(const link_key& key, size_t slot_bytes, gpu::device& replica,
                    gpu::device& shard, uint32_t slots) {
  gpu::ring_terms terms;
  terms.slots = slots;
  terms.slot_bytes = gpu::slot_room(slot_bytes);
  terms.epoch = key.epoch;
  auto forth = gpu::make_device_ring(replica, shard, terms);
  auto back = gpu::make_device_ring(shard, replica, terms);
  return {{forth.to, back.from}, {back.to, forth.from}};
}

fabric::fabric(std::function<size_t(uint32_t)> slot_bytes, device_of_seat replica,
               device_of_seat shard)
    : slot_bytes_{std::move(slot_bytes)}, replica_{std::move(replica)}, shard_{std::move(shard)} {}

link_pair& fabric::find(const link_key& key) {
  auto found = links_.find(key);
  if (found == links_.end())
    found = links_
                .emplace(key, make_link(key, slot_bytes_(key.stream), replica_(key.replica),
                                        shard_(key.shard)))
                .first;
  return found->second;
}

link_end fabric::replica_end(const link_key& key) {
  std::lock_guard lock{mutex_};
  return find(key).replica;
}

link_end fabric::shard_end(const link_key& key) {
  std::lock_guard lock{mutex_};
  return find(key).shard;
}

} // namespace lamella::net
