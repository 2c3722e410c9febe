#include "actors/worker/in_process_links.hpp"

namespace lamella::actors {

void in_process_links::sits(uint16_t seat, std::shared_ptr<gpu::device> device) {
  std::lock_guard lock{mutex_};
  devices_[seat] = std::move(device);
}

link_port in_process_links::port() {
  link_port port;
  port.address = "in_process";
  port.direct = true;
  port.open = [self = shared_from_this()](const link_order& order) { return self->open(order); };
  port.close = [self = shared_from_this()](uint64_t epoch) { self->close(epoch); };
  return port;
}

/// Whoever comes first makes both ends.
net::link_end in_process_links::open(const link_order& order) {
  const bool attends = order.side == link_side::shard;
  std::lock_guard lock{mutex_};
  if (!ended_.begin(order.key.epoch)) throw gpu::channel_ended{gpu::channel_state::revoked};
  auto found = links_.find(order.key);
  if (found == links_.end()) {
    auto mine = devices_.at(order.self.seat), other = devices_.at(order.other.value().seat);
    if (attends) std::swap(mine, other);
    link made{net::make_link(order.key, order.frame_bytes, *mine, *other, order.frames), mine,
              other};
    found = links_.emplace(order.key, std::move(made)).first;
  }
  const auto& ends = found->second.ends;
  return attends ? ends.shard : ends.replica;
}

/// Streams of either side that wait for the other one wake: a ring in a device's own memory says
/// its end only to the side that is told of it.
void in_process_links::close(uint64_t epoch) {
  std::lock_guard lock{mutex_};
  ended_.end(epoch);
  std::erase_if(links_, [&](auto& x) {
    if (x.first.epoch != epoch) return false;
    for (const auto* end : {&x.second.ends.replica, &x.second.ends.shard}) {
      end->to->end(gpu::channel_state::revoked);
      end->from->end(gpu::channel_state::revoked);
    }
    return true;
  });
}

} // namespace lamella::actors
