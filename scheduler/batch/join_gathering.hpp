/// When a batch of a new epoch launches its first iteration.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace lamella::scheduler {

/// How many sequences of the epoch before come to each batch. Where nothing is known of them, none
/// need come, and any number may.
struct join_share {
  uint32_t least = 0, most = std::numeric_limits<uint32_t>::max();
};

/// So many sequences, spread evenly over some batches.
constexpr join_share even_share(uint32_t sequences, uint32_t batches) {
  if (batches == 0) return {};
  return {sequences / batches, (sequences + batches - 1) / batches};
}

/// Sequences of the epoch before join the batch of the next one within milliseconds, each by a
/// message of its own request. An iteration of the first of them would make all others wait for its
/// end, and for that of the one behind it, which is launched early. The batch waits until all of
/// its share have joined or, where it may have got its share, until none has joined for `quiet`; in
/// both cases until the rows of all that have joined can run; and for `longest` at most.
class join_gathering {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds quiet = std::chrono::milliseconds{2};
  static constexpr nanoseconds longest = std::chrono::milliseconds{20};

  /// `waits`: an epoch before this one has left sequences.
  explicit join_gathering(bool waits = false, join_share share = {})
      : waits_{waits && share.most > 0}, share_{share} {}

  /// A sequence has joined.
  void joined(nanoseconds now) {
    if (count_++ == 0) first_ = now;
    newest_ = now;
  }

  /// Whether the first launch may still have to wait.
  bool waits() const { return waits_; }
  /// From `now` to the first launch; 0: at once, and for ever. `ready`: no row waits for a token
  /// mask.
  nanoseconds rest(nanoseconds now, bool ready = true) {
    if (!waits_ || count_ == 0) return nanoseconds{0};
    auto end = first_ + longest;
    if (ready && count_ >= share_.least) end = std::min(end, newest_ + quiet);
    if ((!ready || count_ < share_.most) && now < end) return end - now;
    waits_ = false;
    return nanoseconds{0};
  }

private:
  bool waits_;
  join_share share_;
  uint32_t count_ = 0; ///< have joined
  nanoseconds first_{0}, newest_{0};
};

} // namespace lamella::scheduler
