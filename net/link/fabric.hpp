/// The channels between replicas and shards of one process.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/ring_end.hpp"
#include "net/link/link.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace lamella::net {

/// Provides one side's end of a link, whatever its transport.
using link_source = std::function<link_end(const link_key&)>;

/// Both ends of a link within a process.
struct link_pair {
  link_end replica, shard;
};

/// A new link between two devices, which must outlive its ends. `slot_bytes`: its largest frame, in
/// bytes; `slots`: the frames that it holds. Throws std::bad_alloc.
link_pair make_link(const link_key& key, size_t slot_bytes, gpu::device& replica,
                    gpu::device& shard, uint32_t slots = gpu::frames_per_link(1));

/// Creates a link when its first end is requested. Thread-safe.
class fabric {
public:
  /// A device by the number of its seat. It must outlive the links.
  using device_of_seat = std::function<gpu::device&(uint32_t)>;

  /// `slot_bytes(stream)`: the largest frame of a stream, in bytes.
  fabric(std::function<size_t(uint32_t)> slot_bytes, device_of_seat replica, device_of_seat shard);

  link_end replica_end(const link_key& key);
  link_end shard_end(const link_key& key);

private:
  link_pair& find(const link_key& key);

  std::function<size_t(uint32_t)> slot_bytes_;
  device_of_seat replica_, shard_;
  std::mutex mutex_;
  std::map<link_key, link_pair> links_;
};

} // namespace lamella::net
