/// Runs the slices of a model for one batch and one iteration, on a stream of a compute device.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/channel.hpp"
#include "gpu/ring/head_exchange.hpp"
#include "gpu/runners/slice_turns.hpp"
#include "gpu/runners/weights.hpp"
#include "gpu/trace/traced_work.hpp"
#include "gpu/urgent_work.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lamella::gpu {

/// The part of a launch that goes to one shard: some rows, some kv heads.
struct shard_share {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
  std::vector<uint32_t> rows; ///< rows of the launch, ascending
  uint32_t first_head = 0, head_count = 0;
};

/// The part that goes to the shard that holds the parity of some others (decision 23): those of a
/// cell, which share the kv heads and have the same rows.
struct parity_share {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
  uint32_t first_share = 0, shares = 0; ///< of the launch, of those shards
  half_type cache = half_type::f16;     ///< of each shard
  size_t frame_bytes = 0;               ///< what the link carries at most
};

/// The part of one iteration for one replica. Rows are tokens at positions.
struct slice_launch {
  frame_tag tag; ///< epoch, iteration, attempt
  half_type wire = half_type::f16;
  std::vector<uint32_t> tokens;       ///< [M], or take_sampled
  std::vector<uint32_t> seats;        ///< [M], < seats_max: the seat whose token take_sampled uses
  std::vector<uint32_t> positions;    ///< [M]
  std::vector<uint32_t> selected;     ///< [S]: rows that are sampled, ascending
  std::vector<sample_record> samples; ///< record.row counts in `selected`
  std::vector<uint32_t> sample_seats; ///< [samples]: the seat that keeps the token
  std::vector<logit_edit> edits;
  std::vector<uint32_t> masks; ///< [masks, mask_words(vocabulary)]
  std::vector<shard_share> shares;
  uint32_t mini_batches = 1; ///< of each share, at most (V-M08)
  std::vector<parity_share> parity;
  /// Where several ranks run the launch together (L-M03), each with its share of the program's
  /// weights: null for one. Rank 0 has the shares; the others have none, and give it their heads.
  std::shared_ptr<const rank_group> ranks;
  slice_turns turns{};
  uint32_t turn = 0; ///< of this replica: it runs the slices of this turn
  /// From the replica of the turn before, to that of the next (L-M21); of rank 0, which gives the
  /// context to the others.
  runner_link context{};
};

/// State that outlives a launch: one per replica and batch.
class slice_stream_state {
public:
  explicit slice_stream_state(device& where)
      : last_sampled_{where.allocate(seats_max * sizeof(uint32_t))} {}

  /// [seats_max], in device memory.
  uint32_t* last_sampled() { return reinterpret_cast<uint32_t*>(last_sampled_->data()); }

private:
  std::unique_ptr<memory> last_sampled_;
};

/// Executes the program's slices 0 to L in order; `recv_attention` and `recv_context` are where it
/// may block. Of replicas that run the slices in turn each executes its own (L-M17); the one that
/// has the last slice samples, and has the first slice of the next iteration too.
/// Steps that send count as transfer time.
///
/// With parity an iteration ends only when its parity is stored: the KV of every reported token
/// survives the loss of one shard (reliability A6).
///
/// All ranks of a group sample the same tokens: each needs them for its next launch.
class slice_runner final : public work, public traced_work, public urgent_work {
public:
  slice_runner(std::shared_ptr<const model::model_program> program,
               std::shared_ptr<const packed_weights> weights, const operators& ops,
               slice_launch launch, std::shared_ptr<slice_stream_state> state);

  progress advance(kernel_context context) override;
  step_label next_step() const override;
  step_label whole() const override;

  /// Within a slice of a decode iteration, until Q, K and V are sent.
  bool is_urgent() const override;

  /// One per sample record, valid when done; none where another replica has the last slice.
  const std::vector<sampled_token>& sampled() const { return sampled_; }

  /// Logits of the selected rows, [S, vocabulary], in device memory; valid when done, until the
  /// stream's next launch or until the engine has been idle for two seconds.
  const float* logits() const { return logits_; }

  /// Payload bytes sent so far, over all shares. Traffic between ranks is not included.
  uint64_t bytes_sent() const { return bytes_sent_; }

private:
  void begin(arena& room);
  void check_launch() const;
  void meet_ranks(arena& room);
  void make_pieces();
  uint32_t rows_of(model::buffer_id buffer) const;
  uint32_t heads_stride(model::buffer_id buffer) const;
  progress execute(const model::instruction& x, kernel_context context);
  void matmul(const model::instruction& x, kernel_context context);
  progress send(const model::instruction& x, kernel_context context);
  progress send_parities(const model::instruction& x, kernel_context context);
  bool send_parity(const parity_share& parity, const model::instruction& x, kernel_context context);
  progress end_with_parity();
  progress receive_attention(const model::instruction& x, kernel_context context);
  progress send_context(const model::instruction& x, kernel_context context);
  void write_context(const std::vector<model::buffer_id>& buffers, std::byte* to,
                     kernel_context context);
  progress receive_context(const model::instruction& x, kernel_context context);
  progress pass_context(const model::instruction& x, kernel_context context);
  size_t context_bytes(const std::vector<model::buffer_id>& buffers) const;
  bool has_next();
  progress all_reduce(const model::instruction& x, kernel_context context);
  void sample(const model::instruction& x, kernel_context context);

  std::shared_ptr<const model::model_program> program_;
  std::shared_ptr<const packed_weights> weights_;
  const operators& ops_;
  slice_launch launch_;
  std::shared_ptr<slice_stream_state> state_;
  std::vector<float*> buffers_;
  std::vector<uint32_t> rows_;            ///< all of the launch, where its context migrates
  std::optional<head_exchange> exchange_; ///< of rank 0 where there are others
  /// The present instruction has what the other ranks, or the replica before, have to give.
  bool collected_ = false;
  std::vector<sampled_token> sampled_;
  const float* logits_ = nullptr;
  /// A mini-batch of a share, or all of it: what has a frame of its own.
  struct piece {
    const shard_share* share;
    std::span<const uint32_t> rows; ///< of the launch
  };
  std::vector<piece> pieces_; ///< the first of each share, then the second of each, ...
  /// Current position; the last of the pieces, or of the ranks that get the context.
  size_t slice_ = 0, instruction_ = 0, piece_ = 0;
  size_t parity_ = 0; ///< of the parity shares
  uint32_t sums_ = 0; ///< over the ranks, so far
  uint64_t bytes_sent_ = 0;
  bool begun_ = false;
  bool decodes_ = false; ///< each row is of another sequence
};

} // namespace lamella::gpu
