#include "actors/worker/shared_port.hpp"

namespace lamella::actors {

struct shared_port::user {
  std::shared_ptr<shared_port> port;
  net::ended_epochs ended;

  explicit user(std::shared_ptr<shared_port> of) : port{std::move(of)} {}
  ~user() { port->leave(*this); }
};

link_port shared_port::of_worker() {
  auto port = plane_;
  const auto who = std::make_shared<user>(shared_from_this());
  port.open = [who](const link_order& order) { return who->port->open(*who, order); };
  port.close = [who](uint64_t epoch) { who->port->close(*who, epoch); };
  return port;
}

net::link_end shared_port::open(user& who, const link_order& order) {
  const std::lock_guard lock{mutex_};
  const auto epoch = order.key.epoch;
  if (!who.ended.begin(epoch)) throw gpu::channel_ended{gpu::channel_state::revoked};
  auto end = plane_.open(order);
  ends_[epoch][&who].push_back(end);
  return end;
}

void shared_port::close(user& who, uint64_t epoch) {
  const std::lock_guard lock{mutex_};
  who.ended.end(epoch);
  end_links(who, epoch);
}

void shared_port::leave(user& who) {
  const std::lock_guard lock{mutex_};
  std::vector<uint64_t> epochs;
  for (const auto& [epoch, users] : ends_)
    if (users.contains(&who)) epochs.push_back(epoch);
  for (const auto epoch : epochs) end_links(who, epoch);
}

void shared_port::end_links(user& who, uint64_t epoch) {
  const auto all = ends_.find(epoch);
  if (all != ends_.end()) {
    if (const auto mine = all->second.extract(&who))
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
