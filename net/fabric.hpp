/// The channels between replicas and shards of one process.
#pragma once

#include "gpu/channel.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace lamella::net {

/// What one device needs to talk to another: a sender and a receiver.
struct link_end {
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
};

/// Which link: an epoch's channels are never used in another one (reliability A3).
struct link_key {
  uint64_t epoch = 0;
  uint32_t stream = 0;
  uint32_t replica = 0;
  uint32_t shard = 0;
  auto operator<=>(const link_key&) const = default;
};

/// Makes a link when its first end is asked for. Thread-safe.
class fabric {
public:
  /// `slot_bytes(stream)`: the largest frame of a stream, in bytes.
  explicit fabric(std::function<size_t(uint32_t)> slot_bytes);

  link_end replica_end(const link_key& key);
  link_end shard_end(const link_key& key);

private:
  struct link {
    link_end replica, shard;
  };
  link& find(const link_key& key);

  std::function<size_t(uint32_t)> slot_bytes_;
  std::mutex mutex_;
  std::map<link_key, link> links_;
};

} // namespace lamella::net
