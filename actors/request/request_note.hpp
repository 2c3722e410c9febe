/// What others may read of a REQUEST while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

namespace lamella::actors {

struct request_state;

/// Written by the request behind each of its messages, read by any thread. Each figure is true by
/// itself; two of them may be of different moments.
struct request_note {
  enum class state : uint8_t {
    reading,    ///< of its body
    waiting,    ///< for slots, or a place in a batch
    prefilling, ///< its prompt is computed
    decoding,
    stalled,    ///< its client reads too slowly
    recovering, ///< paused by a loss
    sending     ///< all is computed
  };
  std::atomic<state> where{state::reading};
  std::atomic<uint64_t> prompt_tokens{0}, generated{0};
  std::atomic<uint32_t> recoveries{0};
  /// When the longest of its present pauses by a loss began, by the steady clock; 0: it goes on.
  std::atomic<int64_t> paused_since_ns{0};
};

using request_note_ptr = std::shared_ptr<request_note>;

/// "waiting" and so on.
std::string_view name_of(request_note::state x);

/// Writes down how it goes.
void note_progress(const request_state& st);

} // namespace lamella::actors
