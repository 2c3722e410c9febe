/// Synchronisation of streams of a prefill worker's device on its scratch KV, layer by layer.
#pragma once

#include "gpu/device.hpp"

#include <memory>
#include <vector>

namespace lamella::gpu {

/// Two kinds of counters. A number n of an iteration or a pull stands for its layer l as
/// n * layers + l + 1, so later ones include earlier ones.
///
///   written  K and V of an iteration are in the cache: offers may read them (S-M14)
///   taken    an offer to a shard has read them: a later iteration may write the slots again,
///            long before the pull is over (S-M16)
class kv_hand_over {
public:
  kv_hand_over(device& where, uint32_t layers, uint32_t shards)
      : layers_{layers}, written_{where.make_counter()} {
    for (uint32_t i = 0; i < shards; ++i) taken_.push_back(where.make_counter());
  }

  void write(uint64_t iteration, uint32_t layer) { written_->raise(at(iteration, layer)); }
  bool is_written(uint64_t iteration, uint32_t layer) {
    return written_->reached(at(iteration, layer));
  }

  void take(uint32_t shard, uint64_t pull, uint32_t layer) {
    taken_[shard]->raise(at(pull, layer));
  }
  bool is_taken(uint32_t shard, uint64_t pull, uint32_t layer) {
    return taken_[shard]->reached(at(pull, layer));
  }
  /// The offer has ended, with or without success, and reads no more slots.
  void end_take(uint32_t shard, uint64_t pull) { taken_[shard]->skip(at(pull, layers_ - 1)); }

  uint32_t shards() const { return static_cast<uint32_t>(taken_.size()); }

private:
  uint64_t at(uint64_t number, uint32_t layer) const { return number * layers_ + layer + 1; }

  uint32_t layers_;
  std::shared_ptr<counter> written_;
  std::vector<std::shared_ptr<counter>> taken_; ///< by shard
};

} // namespace lamella::gpu
