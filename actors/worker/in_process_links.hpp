/// The link port of seats that are all in this process.
#pragma once

#include "actors/machine/link_port.hpp"
#include "gpu/device.hpp"
#include "net/data_plane/ended_epochs.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace lamella::actors {

/// Links are rings in memory that the devices of both sides reach (net/link/fabric.hpp): nothing is
/// listened on, nothing is staged, and no peer can be out of reach. Thread-safe.
class in_process_links : public std::enable_shared_from_this<in_process_links> {
public:
  /// The device whose streams use the links of that seat (scheduler::number_of), before a WORKER
  /// opens some.
  void sits(uint16_t seat, std::shared_ptr<gpu::device> device);

  /// The same port for all seats.
  link_port port();

private:
  struct link {
    net::link_pair ends;
    std::shared_ptr<gpu::device> replica, shard; ///< outlive the ends
  };

  /// Throws gpu::channel_ended (revoked) where the epoch is over.
  net::link_end open(const link_order& order);
  void close(uint64_t epoch);

  std::mutex mutex_;
  std::map<uint16_t, std::shared_ptr<gpu::device>> devices_; ///< by seat
  std::map<net::link_key, link> links_;                      ///< of open epochs
  net::ended_epochs ended_;
};

} // namespace lamella::actors
