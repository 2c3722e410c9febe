#include "actors/worker/worker_report.hpp"

#include "actors/protocol/work_reports.hpp"
#include "actors/shared/log_drops.hpp"
#include "actors/worker/worker_links.hpp"

namespace lamella::actors {

using scheduler::worker_role;

namespace {

/// All links of an epoch to other seats, with the seat at the other end of each.
template <class Use> void for_links(const worker_state& st, const worker_epoch& at, Use use) {
  const bool attends = st.config.where.role == worker_role::attention;
  const auto& x = at.order;
  for (const auto& [key, end] : at.links)
    if (!attends || key.replica != x.lender)
      use(key, end, peer_of(st.config.where.role, x, key).seat);
  for (const auto& [key, end] : at.lends)
    if (key.shard != x.number) use(key, end, x.shards.at(key.shard).seat);
}

uint64_t sent_over(const net::link_end& end) { return end.sent ? end.sent->load() : 0; }

/// Adds the frames that this side of a link has dropped.
void add_drops(std::array<uint64_t, net::frame_faults>& to, const net::link_end& end) {
  const auto at = [&](net::frame_fault x) -> uint64_t& { return to[static_cast<size_t>(x)]; };
  if (end.dropped) {
    at(net::frame_fault::epoch) += end.dropped->epoch;
    at(net::frame_fault::attempt) += end.dropped->attempt;
    at(net::frame_fault::duplicate) += end.dropped->duplicate;
  }
  // One that fails its checks ends the link.
  const auto state = end.from->state();
  if (state == gpu::channel_state::stale) ++at(net::frame_fault::epoch);
  if (state == gpu::channel_state::torn) ++at(net::frame_fault::damaged);
}

} // namespace

void keep_counts(worker_state& st, const worker_epoch& at) {
  for_links(st, at, [&](const net::link_key&, const net::link_end& end, const std::string& seat) {
    st.sent[seat] += sent_over(end);
    add_drops(st.dropped, end);
    if (std::max(end.to->state(), end.from->state()) == gpu::channel_state::torn) ++st.torn[seat];
  });
}

worker_peers peers_of(const worker_state& st) {
  std::map<std::string, peer_info> peers;
  auto dropped = st.dropped;
  const auto add = [&](const net::link_key& key, const net::link_end& end,
                       const std::string& name) {
    add_drops(dropped, end);
    if (!st.config.port.report) return; // within a process there is nothing to tell
    auto& peer = peers[name];
    const auto link = st.config.port.report(key);
    peer.seat = name;
    if (link.rtt_us > 0 && (peer.rtt_us == 0 || link.rtt_us < peer.rtt_us))
      peer.rtt_us = link.rtt_us;
    peer.measured += link.measured;
    peer.transport = link.transport;
    peer.bytes += sent_over(end);
  };
  for (const auto& [number, at] : st.epochs) for_links(st, at, add);
  worker_peers result;
  for (auto& [name, peer] : peers) {
    if (const auto before = st.sent.find(name); before != st.sent.end())
      peer.bytes += before->second;
    result.peers.push_back(std::move(peer));
  }
  const auto& meter = *st.meter;
  result.work = {meter.iterations(), meter.units(), meter.busy_ns()};
  const auto told = [](const launch_sums& x) {
    return work_done{x.iterations, x.units, x.busy_ns};
  };
  result.tokens = told(meter.launches(launch_kind::tokens));
  result.prompts = told(meter.launches(launch_kind::prompts));
  if (!st.config.metrics) {
    result.computed_ns = meter.computed_ns();
    for (const auto& x : meter.times()) result.stages.push_back({x.counts(), x.total_ns()});
    result.log_dropped = log_lines_dropped - st.log_dropped_before;
  }
  result.dropped.assign(dropped.begin(), dropped.end());
  return result;
}

} // namespace lamella::actors
