/// Cuts waiting prompts into chunks (S-M10: first come first served, bounded tokens per iteration).
#pragma once

#include "scheduler/types.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace lamella::scheduler {

/// A piece of one prompt in one prefill iteration.
struct prefill_piece {
  sequence_id sequence{};
  uint32_t position = 0; ///< of its first token
  uint32_t tokens = 0;
  bool last = false; ///< ends the prompt: its last row is sampled
};

/// A first-come queue of prompts, cut into iterations of at most `chunk_tokens` tokens; short
/// prompts share an iteration. Chunk borders change no bit of the result (decision 9).
class prefill_plan {
public:
  explicit prefill_plan(uint32_t chunk_tokens) : chunk_tokens_{chunk_tokens} {}

  void add(sequence_id sequence, uint32_t tokens) { queue_.push_back({sequence, tokens, 0}); }

  /// Drops a prompt that has tokens left; false when it has none.
  bool remove(sequence_id sequence) {
    for (auto it = queue_.begin(); it != queue_.end(); ++it)
      if (it->sequence == sequence) {
        queue_.erase(it);
        return true;
      }
    return false;
  }

  /// The pieces of the next iteration; empty when nothing waits. At most `sequences_max` prompts.
  std::vector<prefill_piece> next(uint32_t sequences_max) {
    std::vector<prefill_piece> pieces;
    uint32_t room = chunk_tokens_;
    while (!queue_.empty() && room > 0 && pieces.size() < sequences_max) {
      auto& head = queue_.front();
      const auto count = std::min(room, head.tokens - head.done);
      const bool last = head.done + count == head.tokens;
      pieces.push_back({head.sequence, head.done, count, last});
      room -= count;
      head.done += count;
      if (last) queue_.pop_front();
    }
    return pieces;
  }

  bool empty() const { return queue_.empty(); }
  uint64_t waiting_tokens() const {
    uint64_t total = 0;
    for (const auto& x : queue_) total += x.tokens - x.done;
    return total;
  }

private:
  struct entry {
    sequence_id sequence;
    uint32_t tokens, done;
  };
  uint32_t chunk_tokens_;
  std::deque<entry> queue_;
};

} // namespace lamella::scheduler
