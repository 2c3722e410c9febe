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
  /// the epoch of the plane with the last WORKER that has links there. Its `open` throws
  /// gpu::channel_ended (revoked) for an epoch that it has closed.
  link_port of_worker();

  /// Where peers reach this process.
  const std::string& address() const { return plane_.address; }

private:
  /// One WORKER.
  struct user {
    net::ended_epochs ended;
  };
  net::link_end open(const std::shared_ptr<user>& who, const link_order& order);
  void close(const std::shared_ptr<user>& who, uint64_t epoch);

  link_port plane_;
  std::mutex mutex_; ///< of what follows
  /// Ends of each WORKER, by epoch.
  std::map<uint64_t, std::map<std::shared_ptr<user>, std::vector<net::link_end>>> ends_;
};

} // namespace lamella::actors
