#include "actors/worker/worker_report.hpp"

#include "actors/protocol/status.hpp"
#include "actors/shared/log_drops.hpp"

namespace lamella::actors {

using scheduler::worker_role;

namespace {

/// The seat at the other end of a link of ours.
const std::string& other_seat(const worker_state& st, const net::link_key& key) {
  const bool attends = st.config.where.role == worker_role::attention;
  return attends ? st.open.replicas.at(key.replica).seat : st.open.shards.at(key.shard).seat;
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

void keep_counts(worker_state& st) {
  for (const auto& [key, end] : st.links) {
    st.sent[other_seat(st, key)] += sent_over(end);
    add_drops(st.dropped, end);
  }
}

worker_peers peers_of(const worker_state& st) {
  std::map<std::string, peer_info> peers;
  for (const auto& [key, end] : st.links) {
    if (!st.config.port.report) break; // within a process there is nothing to tell
    const auto& name = other_seat(st, key);
    auto& peer = peers[name];
    const auto link = st.config.port.report(key);
    peer.seat = name;
    if (link.rtt_us > 0 && (peer.rtt_us == 0 || link.rtt_us < peer.rtt_us))
      peer.rtt_us = link.rtt_us;
    peer.measured += link.measured;
    peer.transport = link.transport;
    peer.bytes += sent_over(end);
  }
  worker_peers result;
  for (auto& [name, peer] : peers) {
    if (const auto before = st.sent.find(name); before != st.sent.end())
      peer.bytes += before->second;
    result.peers.push_back(std::move(peer));
  }
  const auto& meter = *st.meter;
  result.work = {meter.iterations(), meter.units(), meter.busy_ns()};
  if (!st.config.metrics) {
    result.computed_ns = meter.computed_ns();
    for (const auto& x : meter.times()) result.stages.push_back({x.counts(), x.total_ns()});
    result.log_dropped = log_lines_dropped - st.log_dropped_before;
  }
  auto dropped = st.dropped;
  for (const auto& [key, end] : st.links) add_drops(dropped, end);
  result.dropped.assign(dropped.begin(), dropped.end());
  return result;
}

} // namespace lamella::actors
