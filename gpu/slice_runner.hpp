/// Runs the slices of a model for one batch and one iteration, on a stream of a compute device.
#pragma once

#include "gpu/channel.hpp"
#include "gpu/device.hpp"
#include "gpu/weights.hpp"

#include <memory>
#include <vector>

namespace lamella::gpu {

/// The part of a launch that goes to one shard: some rows, some kv heads.
struct shard_share {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
  std::vector<uint32_t> rows; ///< rows of the launch, ascending
  uint32_t first_head = 0, head_count = 0;
};

/// A token id that stands for "what this seat sampled last", which is still in device memory.
constexpr uint32_t take_sampled = ~uint32_t{0};

/// What one iteration asks of one replica. Rows are tokens at positions.
struct slice_launch {
  frame_tag tag; ///< epoch, iteration, attempt
  half_type wire = half_type::f16;
  std::vector<uint32_t> tokens;       ///< [M], or take_sampled
  std::vector<uint32_t> seats;        ///< [M]: whose sampled token take_sampled means
  std::vector<uint32_t> positions;    ///< [M]
  std::vector<uint32_t> selected;     ///< [S]: rows that are sampled from, ascending
  std::vector<sample_record> samples; ///< record.row counts in `selected`
  std::vector<uint32_t> sample_seats; ///< [samples]: the seat that keeps the token
  std::vector<logit_edit> edits;
  std::vector<shard_share> shares;
};

/// What outlives a launch: one per replica and batch.
struct slice_stream_state {
  std::vector<uint32_t> last_sampled; ///< by seat
};

/// Executes the program's slices 0 to L in order; `recv_attention` is where it may block. Tail
/// slice and next head slice lie in one work only when launches follow each other on the stream.
class slice_runner final : public work {
public:
  slice_runner(std::shared_ptr<const model::model_program> program,
               std::shared_ptr<const packed_weights> weights, const operators& ops,
               slice_launch launch, std::shared_ptr<slice_stream_state> state);

  progress advance(kernel_context context) override;

  /// One per sample record, valid when done.
  const std::vector<sampled_token>& sampled() const { return sampled_; }

  /// Logits of the selected rows, [S, vocabulary]; valid when done, until the stream's next launch
  /// or until the engine has been idle for two seconds.
  const float* logits() const { return logits_; }

  /// Time spent in steps so far, waiting not counted.
  clock::duration busy() const { return busy_; }

  /// Payload bytes sent so far, over all shares.
  uint64_t bytes_sent() const { return bytes_sent_; }

private:
  progress step(kernel_context context);
  void begin(arena& room);
  uint32_t rows_of(model::buffer_id buffer) const;
  progress execute(const model::instruction& x, kernel_context context);
  void matmul(const model::instruction& x, kernel_context context);
  progress send(const model::instruction& x, kernel_context context);
  progress receive_attention(const model::instruction& x, kernel_context context);
  void sample(const model::instruction& x, kernel_context context);

  std::shared_ptr<const model::model_program> program_;
  std::shared_ptr<const packed_weights> weights_;
  const operators& ops_;
  slice_launch launch_;
  std::shared_ptr<slice_stream_state> state_;
  std::vector<float*> buffers_;
  std::vector<uint32_t> token_ids_;
  std::vector<sampled_token> sampled_;
  const float* logits_ = nullptr;
  size_t slice_ = 0, instruction_ = 0, share_ = 0; ///< where it stands
  uint64_t bytes_sent_ = 0;
  clock::duration busy_{0};
  bool begun_ = false;
};

} // namespace lamella::gpu
