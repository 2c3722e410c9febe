/// The links of a worker's seat in an epoch.
#pragma once

#include "actors/worker/worker_state.hpp"

namespace lamella::actors {

/// Opens all links of an epoch to seats of other roles, and those over which its shards take KV of
/// the epoch before. On a device whose memory links do not
/// reach, it creates the staging rings, while nothing runs there (net/link/staged_link.hpp). Throws
/// what link_port::open throws, and std::bad_alloc.
void connect(worker_state& st, worker_epoch& at);

/// The seat at the other end of one of them.
const epoch_peer& peer_of(scheduler::worker_role role, const epoch_open& at,
                          const net::link_key& key);

/// Those links, for their users.
net::link_source links_made(const worker_epoch& at);

/// Opens the links of this shard to other members of its pool (reliability A6), each on first use.
/// Mapped memory cannot be allocated while streams of a device wait for each other: a seat on such
/// a device opens them all at once.
net::link_source member_links_of(const worker_state& st, const worker_epoch& at);

} // namespace lamella::actors
