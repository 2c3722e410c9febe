/// One data plane for several WORKERs of a process: each ends its own links, and no other's.
#pragma once

#include "actors/machine/link_port.hpp"
#include "net/data_plane/ended_epochs.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace lamella::actors {

/// Thread-safe.
class shared_port : public std::enable_shared_from_this<shared_port> {
public:
  explicit shared_port(link_port plane) : plane_{std::move(plane)} {}

  /// The port of one WORKER. Its `close` revokes what this WORKER has opened in the epoch, and ends
  /// the epoch of the plane with the last WORKER that has links there; so does the end of the port
  /// and its copies, for all epochs. Its `open` throws gpu::channel_ended (revoked) for an epoch
  /// that it has closed.
  link_port of_worker();

  /// Where peers reach this process.
  const std::string& address() const { return plane_.address; }

private:
  struct user; ///< one WORKER
  net::link_end open(user& who, const link_order& order);
  void close(user& who, uint64_t epoch);
  void leave(user& who);
  void end_links(user& who, uint64_t epoch); ///< the mutex is held

  link_port plane_;
  std::mutex mutex_; ///< of the next one
  /// Ends of each WORKER, by epoch.
  std::map<uint64_t, std::map<const user*, std::vector<net::link_end>>> ends_;
};

} // namespace lamella::actors
