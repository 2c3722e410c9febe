#include "actors/worker/shared_port.hpp"

namespace lamella::actors {

link_port shared_port::of_worker() {
  auto port = plane_;
  const auto who = std::make_shared<user>();
  port.open = [self = shared_from_this(), who](const link_order& x) { return self->open(who, x); };
  port.close = [self = shared_from_this(), who](uint64_t epoch) { self->close(who, epoch); };
  return port;
}

net::link_end shared_port::open(const std::shared_ptr<user>& who, const link_order& order) {
  std::lock_guard lock{mutex_};
  const auto epoch = order.key.epoch;
  if (who->ended.ended(epoch)) throw gpu::channel_ended{gpu::channel_state::revoked};
  auto end = plane_.open(order);
  ends_[epoch][who].push_back(end);
  return end;
}

void shared_port::close(const std::shared_ptr<user>& who, uint64_t epoch) {
  std::lock_guard lock{mutex_};
  who->ended.end(epoch);
  const auto all = ends_.find(epoch);
  if (all != ends_.end()) {
    if (const auto mine = all->second.extract(who))
      for (const auto& x : mine.mapped()) {
        x.to->end(gpu::channel_state::revoked);
        x.from->end(gpu::channel_state::revoked);
      }
    if (!all->second.empty()) return;
    ends_.erase(all);
  }
  plane_.close(epoch);
}

} // namespace lamella::actors
