#include "net/link/fabric.hpp"

#include "gpu/ring/device_ring.hpp"

namespace lamella::net {

namespace {
/// Q and KV of two layers: a replica may run ahead of a shard by a layer.
constexpr uint32_t slots_per_link = 4;
} // namespace

fabric::fabric(std::function<size_t(uint32_t)> slot_bytes, device_of_seat replica,
               device_of_seat shard)
    : slot_bytes_{std::move(slot_bytes)}, replica_{std::move(replica)}, shard_{std::move(shard)} {}

fabric::link& fabric::find(const link_key& key) {
  auto found = links_.find(key);
  if (found != links_.end()) return found->second;
  gpu::ring_terms terms;
  terms.slots = slots_per_link;
  terms.slot_bytes = gpu::slot_room(slot_bytes_(key.stream));
  terms.epoch = key.epoch;
  auto& replica = replica_(key.replica);
  auto& shard = shard_(key.shard);
  auto forth = gpu::make_device_ring(replica, shard, terms);
  auto back = gpu::make_device_ring(shard, replica, terms);
  return links_.emplace(key, link{{forth.to, back.from}, {back.to, forth.from}}).first->second;
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
