/// The two sides of a pull: K and V of some rows, all layers, from a prefill worker's cache into an
/// attention shard's (decision 27; Lamina v1 5; Splitwise IV-C), or between members of an attention
/// pool, where a spare reconstructs KV from the other members (reliability A6).
///
/// The shard grants (frames of kind `pull`), and the prefill worker sends one piece per grant
/// (frames of kind `rows`). Pieces are numbered layer by layer; both sides know the content of each
/// in advance, so only rows are sent. Moves layers * rows * row bytes, once.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/channel.hpp"
#include "gpu/runners/kv_cache.hpp"
#include "gpu/runners/kv_hand_over.hpp"
#include "gpu/runners/qkv_watch.hpp"
#include "gpu/trace/traced_work.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace lamella::gpu {

/// Rows of one frame: runs [first_run, first_run + run_count).
struct transfer_piece {
  uint32_t rows = 0;
  uint32_t first_run = 0, run_count = 0;
};

/// A pull as one side sees it.
struct transfer_launch {
  uint64_t epoch = 0;
  uint64_t pull = 0;                  ///< number; increases with each pull of a link
  std::vector<slot_run> runs;         ///< this side's slots of the rows
  std::vector<transfer_piece> pieces; ///< of one layer, the same for all layers and on both sides
  uint32_t first_head = 0;            ///< of this side's cache
  uint32_t head_count = 0;
  bool add = false; ///< the shard's side: XOR the rows into what the slots hold (reliability A6)
};

/// Common part of both sides: position and digest of the moved rows.
class kv_transfer : public work, public traced_work {
public:
  /// Digest of all rows; valid when done. The rows are complete when both sides' digests match.
  uint64_t digest() const { return digest_; }
  uint64_t bytes() const { return words_ * 4; }
  step_label next_step() const override { return whole(); }

protected:
  kv_transfer(std::shared_ptr<const kv_cache> cache, const operators& ops, transfer_launch launch);

  frame_tag tag_of(frame_kind kind, uint64_t piece) const;
  uint64_t pieces() const { return launch_.pieces.size() * uint64_t{cache_->layers()}; }
  size_t bytes_of_next() const;
  uint32_t layer_of_next() const { return static_cast<uint32_t>(next_ / launch_.pieces.size()); }
  bool next_begins_layer() const { return next_ % launch_.pieces.size() == 0; }
  copy_kv_args next_with(std::byte* packed);
  progress done_with_next();

  std::shared_ptr<const kv_cache> cache_;
  const operators& ops_;
  transfer_launch launch_;
  uint64_t next_ = 0; ///< the piece that is moved next

private:
  uint64_t words_ = 0, digest_ = 0;
};

/// When a shard grants and takes pieces; see scheduler/pull_plan.hpp.
struct pull_policy {
  /// Whether a step may run now, given whether Q, K or V wait and how many were received.
  std::function<bool(bool qkv_waits, uint64_t receives)> may_step;
  /// Total number of pieces that may be granted, given the number of pieces and of those taken.
  std::function<uint64_t(uint64_t pieces, uint64_t taken)> grants;
};

/// THE SHARD'S SIDE: takes at most one piece per step, in the gaps of attention (L-M28).
class pull_runner final : public kv_transfer {
public:
  /// Without a watch, pieces are taken at any time.
  pull_runner(std::shared_ptr<const kv_cache> cache, const operators& ops, transfer_launch launch,
              std::shared_ptr<channel_receiver> from, std::shared_ptr<channel_sender> to,
              pull_policy policy, std::shared_ptr<const qkv_watch> watch);

  progress advance(kernel_context context) override;
  step_label whole() const override { return {"pull", "wait_rows", step_kind::other}; }

private:
  std::shared_ptr<channel_receiver> from_;
  std::shared_ptr<channel_sender> to_;
  pull_policy policy_;
  std::shared_ptr<const qkv_watch> watch_;
  uint64_t granted_ = 0;
};

/// What an offer waits for besides grants.
struct offer_terms {
  std::shared_ptr<kv_hand_over> hand_over{}; ///< null: no iteration waits for the reads
  uint32_t shard = 0;
  uint64_t iteration = 0;           ///< that writes the rows; 0: the rows are complete
  std::function<bool()> may_step{}; ///< whether a step may run now; empty: always
};

/// THE PREFILL WORKER'S SIDE: sends a piece for every grant, once its layer is computed (S-M14),
/// and reports when a layer has been read (S-M16).
class offer_runner final : public kv_transfer {
public:
  offer_runner(std::shared_ptr<const kv_cache> cache, const operators& ops, transfer_launch launch,
               std::shared_ptr<channel_receiver> from, std::shared_ptr<channel_sender> to,
               offer_terms terms);

  progress advance(kernel_context context) override;
  step_label whole() const override { return {"offer", "wait_grant", step_kind::other}; }

private:
  std::shared_ptr<channel_receiver> from_;
  std::shared_ptr<channel_sender> to_;
  offer_terms terms_;
};

} // namespace lamella::gpu
