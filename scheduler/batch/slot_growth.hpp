/// When a sequence that decodes asks for slots, and which one gives its own up (V-M13, V-M15).
#pragma once

#include "scheduler/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lamella::scheduler {

/// Growth of a sequence by windows of slots.
struct slot_growth {
  uint32_t window = limits::window_slots; ///< slots added at a time
  uint32_t below = limits::grow_below;    ///< slots left when it asks; 0: where growing is instant

  /// Tokens that a sequence may write, from position `next` on, before it asks.
  uint32_t tokens_left(uint32_t next, uint32_t capacity) const {
    return capacity > next + below ? capacity - next - below : 0;
  }
  bool asks(uint32_t next, uint32_t capacity) const { return tokens_left(next, capacity) == 0; }
};

/// The sequence that is preempted where slots ran out: the one that came last of those that
/// `may_go`. `by_age`: a container in the order of arrival. Cost: O(sequences that may not).
template <class Sequences, class MayGo>
std::optional<typename Sequences::value_type> last_to_come(const Sequences& by_age, MayGo may_go) {
  const auto found = std::find_if(by_age.rbegin(), by_age.rend(), may_go);
  if (found == by_age.rend()) return std::nullopt;
  return *found;
}

} // namespace lamella::scheduler
