#include "actors/worker/worker_watch.hpp"

#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/watches.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// Goes on asking those that were asked before.
void watch_all(worker_state& st, const std::vector<epoch_peer>& peers) {
  auto before = std::exchange(st.watched_peers, {});
  for (const auto& x : peers) {
    auto& mine = st.watched_peers[x.seat];
    if (auto old = before.find(x.seat); old != before.end()
                                        && old->second.incarnation == x.incarnation
                                        && old->second.address == x.address) {
      mine = std::move(old->second);
      continue;
    }
    mine = {x.incarnation, x.address, nullptr};
    try {
      mine.reach = st.config.port.watch(x.address);
    } catch (const std::exception& e) {
      spdlog::warn("cannot probe peer seat={} reason=\"{}\"", x.seat, e.what());
    }
  }
}

} // namespace

watch_report on_watch(worker_state& st, const watch_order& x,
                      net::peer_reach::clock::time_point now) {
  watch_report report;
  report.able = static_cast<bool>(st.config.port.watch);
  if (!report.able) {
    report.version = x.version;
    return report;
  }
  if (x.whole) {
    watch_all(st, x.peers);
    st.watch_version = x.version;
  }
  report.version = st.watch_version;
  for (const auto& [seat, peer] : st.watched_peers) {
    const auto failing =
        peer.reach ? peer.reach->failing(now) : std::optional<std::chrono::milliseconds>{};
    report.peers.push_back({seat, peer.incarnation, peer.reach && peer.reach->answers(),
                            static_cast<uint32_t>(failing ? failing->count() : 0)});
  }
  for (const auto& [seat, links] : st.torn) report.torn.push_back({seat, links});
  return report;
}

} // namespace lamella::actors
