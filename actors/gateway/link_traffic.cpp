#include "actors/gateway/link_traffic.hpp"

#include "actors/protocol/status.hpp"

namespace lamella::actors {

void link_traffic::note(const system_status& status, net::metrics& metrics) {
  for (const auto& now : status.workers) {
    auto& before = seen_[now.seat];
    if (before.incarnation != now.incarnation) before = {now.incarnation, {}, {}};
    for (const auto& peer : now.peers) {
      const auto role = peer.seat.substr(0, peer.seat.find('/'));
      if (peer.rtt_us > 0
          && std::exchange(before.measured[peer.seat], peer.measured) != peer.measured)
        metrics.link_rtt(role, peer.transport, peer.rtt_us / 1e6);
      auto& sent = before.sent[peer.seat];
      // Between two links there is no transport: counted at the next report.
      if (peer.transport.empty() || peer.bytes <= sent) continue;
      metrics.link_bytes(role, peer.transport, peer.bytes - sent);
      sent = peer.bytes;
    }
  }
}

} // namespace lamella::actors
