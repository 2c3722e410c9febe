/// Whether memory holds what the members of a next epoch get beside the KV of the one that serves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// Memory for the KV of a member.
struct memory_room {
  static constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();
  std::string host;               ///< members of one host share its memory
  uint64_t free_bytes = no_limit; ///< no_limit: all of its KV has memory already
};

/// A host whose memory is too small.
struct memory_shortage {
  std::string host;
  uint64_t needed = 0, free = 0; ///< bytes
};

/// Bytes of memory that a member's cache takes to hold `copied` bytes; `whole`: the cache. Pages of
/// a window of slots become resident together, one window ahead of what is written, and what is
/// written does not begin and end with a window.
constexpr uint64_t room_for(uint64_t copied, uint64_t whole, uint64_t window_bytes) {
  return copied == 0 ? 0 : std::min(whole, copied + copied / 4 + 3 * window_bytes);
}

/// What stays free of a host's memory, for the frames of the next epoch's links and others.
constexpr uint64_t memory_reserve = uint64_t{64} << 20;

/// The first host by name that has no room for what its members take; `bytes` and `rooms` by
/// member.
inline std::optional<memory_shortage> shortage_of(const std::vector<uint64_t>& bytes,
                                                  const std::vector<memory_room>& rooms) {
  std::map<std::string, memory_shortage> hosts;
  for (size_t i = 0; i < std::min(bytes.size(), rooms.size()); ++i) {
    if (rooms[i].free_bytes == memory_room::no_limit) continue;
    auto& x =
        hosts.try_emplace(rooms[i].host, memory_shortage{rooms[i].host, 0, memory_room::no_limit})
            .first->second;
    x.needed += bytes[i];
    x.free = std::min(x.free, rooms[i].free_bytes);
  }
  for (const auto& [host, x] : hosts)
    if (x.needed > 0 && x.needed + memory_reserve > x.free) return x;
  return std::nullopt;
}

} // namespace lamella::scheduler
