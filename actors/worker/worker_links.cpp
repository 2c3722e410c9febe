#include "actors/worker/worker_links.hpp"

#include "actors/device/context_links.hpp"

#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/epochs.hpp"
#include "base/failpoint.hpp"
#include "net/link/staged_link.hpp"

#include <map>

namespace lamella::actors {

namespace {

using scheduler::worker_role;

gpu::ring_identity identity_of(const worker_config& x) {
  return {scheduler::number_of(x.where), x.incarnation};
}

bool is_move(uint32_t stream) {
  return stream >= scheduler::move_streams && stream < scheduler::offer_streams;
}

/// The links of this seat's part in that epoch, and the other side of each.
std::map<net::link_key, epoch_peer> links_of(const scheduler::seat& where, const epoch_open& x) {
  std::map<net::link_key, epoch_peer> links;
  if (x.number == no_part) return links;
  for (const auto& place : x.streams) {
    const auto stream = static_cast<uint32_t>(place.stream);
    if (where.role == worker_role::attention)
      links[{x.epoch, stream, place.replica, x.number}] = x.replicas.at(place.replica);
    else if (place.replica == x.number)
      for (uint32_t s = 0; s < x.shards.size(); ++s)
        links[{x.epoch, stream, x.number, s}] = x.shards[s];
  }
  return links;
}

/// Those to other replicas, in streams that rotate.
std::vector<net::link_key> contexts_of(const epoch_open& x) {
  std::vector<net::link_key> keys;
  for (const auto& place : x.streams)
    if (place.replica == x.number)
      if (const auto links = context_links_of(
              x.epoch, place.stream, scheduler::places_of(x.streams, place.stream), x.number))
        keys.insert(keys.end(), {links->from, links->to});
  return keys;
}

/// The links over which it lends KV.
std::map<net::link_key, epoch_peer> lends_of(const epoch_open& x) {
  std::map<net::link_key, epoch_peer> links;
  for (const auto& place : x.streams)
    if (x.lender != no_part && place.replica == x.lender)
      for (uint32_t s = 0; s < x.shards.size(); ++s)
        links[{x.epoch, static_cast<uint32_t>(place.stream), x.lender, s}] = x.shards[s];
  return links;
}

uint64_t frame_bytes_of(const worker_state& st, const net::link_key& key, const pool_terms& pool) {
  if (scheduler::is_context(key.stream))
    return pool.decode_rows * st.config.program->context_bytes_per_row();
  if (is_move(key.stream)) return pool.move_frame_bytes;
  if (key.shard >= pool.layout.members()) return pool.parity_frame_bytes;
  return key.stream >= scheduler::prefill_streams ? pool.prefill_frame_bytes
                                                  : pool.decode_frame_bytes;
}

/// What all links of this seat are asked for with.
link_order order_of(const worker_state& st) {
  link_order order;
  order.self = identity_of(st.config);
  order.frames = gpu::frames_per_link(st.config.terms.mini_batches);
  order.timeout = std::chrono::milliseconds{st.config.terms.link_timeout_ms};
  if (st.carries && st.config.port.direct) order.device = st.device;
  return order;
}

/// The end that streams of this seat's device use.
net::link_end carried(const worker_state& st, const link_order& order, net::link_end end) {
  if (!st.carries || order.device) return end;
  net::link_terms staged;
  staged.slots = order.frames;
  staged.slot_bytes = order.frame_bytes;
  return net::stage(*st.device, *st.carries, order.key.epoch, staged, std::move(end));
}

/// How a shard asks for a link to another member of its pool. The one that lends connects.
link_order member_order(link_order order, const epoch_open& at, const net::link_key& key) {
  const bool lends = key.replica == at.number;
  const auto& peer = at.shards.at(lends ? key.shard : key.replica);
  order.key = key;
  order.side = lends ? link_side::replica : link_side::shard;
  order.peer = peer.address;
  order.other = {peer.number, peer.incarnation};
  return order;
}

/// Between a shard of the epoch before and one of this in the same worker: both ends.
void connect_own(const worker_state& st, worker_epoch& at, const net::link_key& key) {
  const auto device = [&](uint32_t) -> gpu::device& { return *st.device; };
  const auto bytes = at.order.pool.move_frame_bytes;
  net::fabric own{[bytes](uint32_t) { return bytes; }, device, device};
  at.lends[key] = own.replica_end(key);
  at.links[key] = own.shard_end(key);
}

net::link_end connect_one(worker_state& st, const epoch_open& at, link_order order,
                          const net::link_key& key, const epoch_peer& peer) {
  order.key = key;
  order.peer = peer.address;
  order.other = {peer.number, peer.incarnation};
  order.frame_bytes = frame_bytes_of(st, key, at.pool);
  auto end = st.config.port.open(order);
  if (order.device) return end; // no frame of it passes through the host
  if (st.config.terms.chaos || failpoint_armed(failpoint::link_send))
    end.to = std::make_shared<net::faulty_sender>(std::move(end.to), st.flaws);
  return carried(st, order, std::move(end));
}

} // namespace

void connect(worker_state& st, worker_epoch& at) {
  const bool attends = st.config.where.role == worker_role::attention;
  auto order = order_of(st);
  order.side = attends ? link_side::shard : link_side::replica;
  for (const auto& [key, peer] : links_of(st.config.where, at.order)) {
    if (attends && key.replica == at.order.lender)
      connect_own(st, at, key);
    else
      at.links[key] = connect_one(st, at.order, order, key, peer);
  }
  if (!attends)
    for (const auto& key : contexts_of(at.order)) { // who hands on connects
      order.side = key.replica == at.order.number ? link_side::replica : link_side::shard;
      at.links[key] =
          connect_one(st, at.order, order, key, peer_of(worker_role::model, at.order, key));
    }
  order.side = link_side::replica;
  for (const auto& [key, peer] : lends_of(at.order))
    if (key.shard != at.order.number) at.lends[key] = connect_one(st, at.order, order, key, peer);
}

const epoch_peer& peer_of(worker_role role, const epoch_open& at, const net::link_key& key) {
  if (scheduler::is_context(key.stream))
    return at.replicas.at(key.replica == at.number ? key.shard : key.replica);
  return role == worker_role::attention ? at.replicas.at(key.replica) : at.shards.at(key.shard);
}

net::link_source links_made(const worker_epoch& at) {
  return [links = at.links](const net::link_key& key) { return links.at(key); };
}

net::link_source member_links_of(const worker_state& st, const worker_epoch& at) {
  auto terms = order_of(st);
  terms.frame_bytes = at.order.pool.member_frame_bytes;
  if (!st.carries)
    return [terms, open = st.config.port.open, order = at.order](const net::link_key& key) {
      return open(member_order(terms, order, key));
    };
  std::map<net::link_key, net::link_end> links;
  const auto number = at.order.number;
  const auto open = [&](uint32_t from, uint32_t to) {
    const net::link_key key{at.order.epoch, scheduler::member_streams + from, from, to};
    const auto order = member_order(terms, at.order, key);
    links[key] = carried(st, order, st.config.port.open(order));
  };
  for (uint32_t other = 0; other < at.order.shards.size(); ++other) {
    if (other == number) continue;
    open(number, other);
    open(other, number);
  }
  return [links](const net::link_key& key) { return links.at(key); };
}

} // namespace lamella::actors
