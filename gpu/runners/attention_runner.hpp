/// Attention of one batch over all layers of one iteration, on a stream of a memory device.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/channel.hpp"
#include "gpu/runners/kv_cache.hpp"
#include "gpu/runners/kv_hand_over.hpp"
#include "gpu/runners/qkv_watch.hpp"
#include "gpu/runners/slice_turns.hpp"
#include "gpu/trace/traced_work.hpp"
#include "gpu/urgent_work.hpp"

#include <memory>
#include <vector>

namespace lamella::gpu {

/// The part of one iteration for one shard.
struct attention_launch {
  frame_tag tag; ///< epoch, iteration, attempt
  uint32_t rows = 0;
  uint32_t group = 1;
  float scale = 1;
  half_type wire = half_type::f16;
  std::vector<attention_span> spans;
  std::vector<slot_run> runs;
  std::shared_ptr<qkv_watch> watch{}; ///< of the shard; null: not tracked
  /// Of a prefill worker's own shard: where written layers are reported, and by shard the newest
  /// pull (0: none) whose offer must have read a layer before the layer is overwritten.
  std::shared_ptr<kv_hand_over> hand_over{};
  std::vector<uint64_t> fences{};
  slice_turns turns{};       ///< of the replicas that send Q, K and V
  uint32_t mini_batches = 1; ///< at most so many, as the replicas have it
};

/// Per layer: Q arrives, the old slots are attended to; K and V arrive, they are appended, the new
/// positions are merged and the output goes back (L-M14, L-M15). The output is written straight
/// into the channel's slot. Steps that append and combine count as transfer time. Where replicas
/// run the slices in turn, layer l comes from the replica of slice l, and its output goes to that
/// of slice l + 1 (L-M21).
///
/// With mini-batches a layer has Q of each, then K and V of each, and an output of each (V-M08).
/// The link holds all of these at once, see frames_per_link().
class attention_runner final : public work, public traced_work, public urgent_work {
public:
  /// `links`: to the replicas of the launch, by turn.
  attention_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                   attention_launch launch, std::vector<runner_link> links);

  progress advance(kernel_context context) override;
  step_label next_step() const override;
  step_label whole() const override;

  /// In a decode launch, after the old positions were attended to and until the new ones are
  /// merged.
  bool is_urgent() const override {
    return phase_ == phase::keys_values && launch_.spans.size() == launch_.rows;
  }

  /// Payload bytes sent so far.
  uint64_t bytes_sent() const { return bytes_sent_; }

private:
  enum class phase : uint8_t { queries, keys_values };

  /// A mini-batch, or all rows.
  struct part {
    uint32_t rows = 0;
    std::vector<attention_span> spans; ///< their rows count from the part's first
    const std::byte* q = nullptr;      ///< of this layer, in its frame
    float* state = nullptr;
  };

  void make_parts();
  void allocate_states(arena& room);
  progress on_queries(kernel_context context);
  progress on_keys_values(kernel_context context);
  void end_layer();
  bool may_write() const;
  size_t elements(const part& x) const;
  attention_args args(const part& x) const;
  channel_receiver& from() const { return *links_[launch_.turns.of(layer_)].from; }

  std::shared_ptr<const kv_cache> cache_;
  const operators& ops_;
  attention_launch launch_;
  std::vector<runner_link> links_; ///< by turn
  qkv_watch::presence presence_;
  std::vector<part> parts_;
  uint32_t layer_ = 0;
  phase phase_ = phase::queries;
  size_t part_ = 0; ///< the next one of this phase
  uint64_t bytes_sent_ = 0;
};

} // namespace lamella::gpu
