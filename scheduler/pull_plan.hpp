/// Transfer of the KV of a prompt from its prefill worker to the attention shards (Lamina v1 5;
/// Splitwise IV-C): what is pulled, in which pieces, and when a shard takes one.
#pragma once

#include "scheduler/types.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lamella::scheduler {

/// When the pull of a prompt begins.
enum class pull_mode : uint8_t {
  serialized, ///< after the prompt: few messages, adds size / bandwidth to the second token
  layered,    ///< with each chunk, layer by layer as computed: hidden behind the next layers
};

/// Known before the prompt starts, from its length alone (Splitwise VI-A: 512 tokens on an H100).
constexpr pull_mode pull_mode_of(uint32_t prompt_tokens, uint32_t serialize_below) {
  return prompt_tokens < serialize_below ? pull_mode::serialized : pull_mode::layered;
}

/// Appends the slots of positions [first, first + count) to `to`; runs that continue the last one
/// are joined, also those of different prompts (S-M17). `runs` must cover these positions.
void append_positions(std::vector<slot_run>& to, std::span<const slot_run> runs, uint32_t first,
                      uint32_t count);

/// Rows that travel in one frame: runs [first_run, first_run + run_count) of the cut.
struct pull_piece {
  uint32_t rows = 0;
  uint32_t first_run = 0, run_count = 0;
};

/// The pieces of one layer; the same for all layers.
struct pull_cut {
  std::vector<slot_run> runs;
  std::vector<pull_piece> pieces;
};

/// Cuts rows into pieces of `rows_max` rows; only the last one is smaller. Both sides of a pull cut
/// their own slots of the same rows, so their pieces match whatever their slots are.
pull_cut cut_rows(std::span<const slot_run> runs, uint32_t rows_max);

/// Rows of `row_bytes` bytes in a piece of at most `bytes_max` bytes; at least one.
constexpr uint32_t piece_rows(uint64_t row_bytes, uint64_t bytes_max) {
  return bytes_max < row_bytes ? 1 : static_cast<uint32_t>(bytes_max / row_bytes);
}

/// Payload of a frame of rows; small, because decoding may have to wait for one.
constexpr uint64_t pull_piece_bytes = 64 << 10;

/// The same of a move. The two sides wait for each other once per frame, and the copy of one takes
/// some ten microseconds.
constexpr uint64_t move_piece_bytes = 256 << 10;

/// Pieces granted and not taken by a shard: the frame slots of a link.
constexpr uint32_t pull_window = 4;

/// Decides when a shard grants and takes pieces (L-M28): in the gaps between QKV receives. While Q,
/// K or V wait, no piece is granted or taken, so decoding waits for at most one piece. A shard
/// without gaps still takes one piece every `receives_per_piece` receives, so pulls finish.
class pull_pacer {
public:
  /// `window`: pieces granted and not yet taken.
  explicit pull_pacer(uint32_t window, uint32_t receives_per_piece = 16)
      : window_{window}, receives_per_piece_{receives_per_piece} {}

  /// May a step of the pull run now? `receives`: QKV receives of the shard since its start.
  bool may_step(bool qkv_waits, uint64_t receives) {
    if (qkv_waits && receives < last_ + receives_per_piece_) return false;
    last_ = receives;
    return true;
  }

  /// Total number of `pieces` pieces that may be granted now that `taken` have been taken.
  uint64_t grants(uint64_t pieces, uint64_t taken) const {
    return pieces - taken < window_ ? pieces : taken + window_;
  }

private:
  uint32_t window_, receives_per_piece_;
  uint64_t last_ = 0;
};

} // namespace lamella::scheduler
