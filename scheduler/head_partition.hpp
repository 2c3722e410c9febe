/// KV heads to shards (L-M23, L-M24; Lamina 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::scheduler {

struct head_range {
  uint32_t first = 0, count = 0;
  friend bool operator==(const head_range&, const head_range&) = default;
};

/// The heads of member `index` of `members`: equal shares, in order.
constexpr head_range heads_of(uint32_t kv_heads, uint32_t members, uint32_t index) {
  return {kv_heads / members * index, kv_heads / members};
}

/// Why `kv_heads` cannot be spread evenly over `members` shards, or nothing (L-M24).
inline std::optional<std::string> refuse_partition(uint32_t kv_heads, uint32_t members) {
  if (members == 0) return "an attention pool needs at least one member";
  if (kv_heads % members == 0) return std::nullopt;
  return "the model's " + std::to_string(kv_heads) + " KV heads cannot be spread evenly over "
         + std::to_string(members) + " attention members; use a divisor of "
         + std::to_string(kv_heads) + ", or partition: requests";
}

} // namespace lamella::scheduler
