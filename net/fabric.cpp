#include "net/fabric.hpp"

#include "net/in_process_channel.hpp"

namespace lamella::net {

namespace {
/// Q and KV of two layers: a replica may run ahead of a shard by a layer.
constexpr size_t slots_per_link = 4;
} // namespace

fabric::fabric(std::function<size_t(uint32_t)> slot_bytes) : slot_bytes_{std::move(slot_bytes)} {}

fabric::link& fabric::find(const link_key& key) {
  auto found = links_.find(key);
  if (found != links_.end()) return found->second;
  const auto bytes = slot_bytes_(key.stream);
  auto forth = make_in_process_channel(slots_per_link, bytes);
  auto back = make_in_process_channel(slots_per_link, bytes);
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
