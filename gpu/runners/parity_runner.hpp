/// The shard that holds the parity of the others, over all layers of one iteration.
#pragma once

#include "gpu/runners/attention_runner.hpp"

namespace lamella::gpu {

/// Stores the parity in the same slots as the other shards their rows, and reports when all of it
/// is stored (decision 23; reliability A6). It computes no attention. `launch` and `links` as for
/// the other shards; the replica of the last slice hears that all is stored.
class parity_runner final : public work {
public:
  /// `frame_bytes`: what the link carries at most.
  parity_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                attention_launch launch, size_t frame_bytes, std::vector<runner_link> links);

  progress advance(kernel_context context) override;

private:
  std::shared_ptr<const kv_cache> cache_;
  const operators& ops_;
  attention_launch launch_;
  size_t frame_bytes_;
  std::vector<runner_link> links_; ///< by turn
  uint32_t layer_ = 0;
};

} // namespace lamella::gpu
