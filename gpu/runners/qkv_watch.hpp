/// Whether attention of a shard has pending work, to which KV pulls yield (L-M28).
#pragma once

#include "gpu/runners/slice_turns.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace lamella::gpu {

/// One per shard. Its streams must run on one thread, because only they may poll a channel: a host
/// device. A device with queues of its own uses priorities instead.
class qkv_watch {
public:
  /// An attention runner that was launched and has not ended.
  class presence {
  public:
    presence() = default;
    presence(std::shared_ptr<qkv_watch> watch, std::span<const runner_link> links);
    ~presence();
    presence(const presence&) = delete;
    presence& operator=(const presence&) = delete;

    /// Q, K and V of a layer have been received and given back.
    void received();

    /// The runner receives no more frames.
    void leave();

  private:
    std::shared_ptr<qkv_watch> watch_;
    std::vector<std::shared_ptr<channel_receiver>> from_;
  };

  /// Whether Q, K or V have arrived for an active runner. Step of a stream.
  bool waits() const;

  /// QKV receives since the start.
  uint64_t receives() const;

private:
  mutable std::mutex mutex_;
  std::map<channel_receiver*, uint32_t> open_; ///< runners that take from it
  uint64_t receives_ = 0;
};

} // namespace lamella::gpu
