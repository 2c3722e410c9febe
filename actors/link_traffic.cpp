#include "actors/link_traffic.hpp"

namespace lamella::actors {

void link_traffic::note(const system_status& status, net::metrics& numbers) {
  for (const auto& now : status.workers) {
    auto& before = seen_[now.seat];
    if (before.incarnation != now.incarnation) before = {now.incarnation, {}};
    for (const auto& peer : now.peers) {
      auto& sent = before.sent[peer.seat];
      // Between two links there is no transport to count for: the next time tells.
      if (peer.transport.empty() || peer.bytes <= sent) continue;
      numbers.link_bytes(peer.seat.substr(0, peer.seat.find('/')), peer.transport,
                         peer.bytes - sent);
      sent = peer.bytes;
    }
  }
}

} // namespace lamella::actors
