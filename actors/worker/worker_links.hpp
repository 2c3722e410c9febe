/// The links of a worker's seat in an epoch.
#pragma once

#include "actors/worker/worker.hpp"

namespace lamella::actors {

/// Asks for all links of the open epoch to seats of other roles. On a device whose memory links do
/// not reach it makes the rings between them: while nothing runs there (net/link/staged_link.hpp).
/// Throws what link_port::open throws, and std::bad_alloc.
void connect(worker_state& st);

/// Those links, for who runs on them.
net::link_source links_made(const worker_state& st);

/// Makes the links of this shard to other members of its pool (reliability A6), each when it is
/// asked for. Memory that a device maps cannot be had while its streams wait for each other: a seat
/// on such a device makes them all at once.
net::link_source member_links_of(const worker_state& st);

} // namespace lamella::actors
