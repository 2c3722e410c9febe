/// What an autoscaler looks at: the pools, the KV in use, the queue, latencies and work (L-M19).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lamella::scheduler {

/// Seconds as measured. A time point is the time since any fixed moment.
using scaling_seconds = std::chrono::duration<double>;

/// A pool whose members may become more or fewer: model replicas, attention shards, prefill
/// workers.
enum class scaled_pool : uint8_t { model, attention, prefill };
constexpr std::array scaled_pools{scaled_pool::model, scaled_pool::attention, scaled_pool::prefill};

/// "model", "attention" or "prefill".
constexpr const char* name_of(scaled_pool pool) {
  constexpr std::array names{"model", "attention", "prefill"};
  return names[static_cast<size_t>(pool)];
}

/// One value for each pool.
template <class T> struct by_pool {
  std::array<T, scaled_pools.size()> all{};
  T& operator[](scaled_pool pool) { return all[static_cast<size_t>(pool)]; }
  const T& operator[](scaled_pool pool) const { return all[static_cast<size_t>(pool)]; }
  friend bool operator==(const by_pool&, const by_pool&) = default;
};

/// One pool at one moment.
struct pool_look {
  uint32_t members = 0; ///< that serve
  uint32_t wanted = 0;  ///< members that a scaling under way leads to; 0: none is under way
  uint32_t least = 1;   ///< members that the pool keeps
  uint32_t most = 0;    ///< members that the pool may have; 0: there is no such pool
  uint32_t heads = 0;   ///< KV heads that members share evenly (L-M24); 0: any number of members
  uint32_t lower = 0;   ///< members after the next step down, as of cells; 0: as `heads` allow
  bool acts = true;     ///< members can be started and ended from here; else others follow the wish
  double busy = -1;     ///< share of the last window that members worked; below 0: unknown

  bool exists() const { return most > 0; }
  /// Whether the pool may have so many members, bounds aside.
  bool allows(uint32_t count) const { return count > 0 && (heads == 0 || heads % count == 0); }
  friend bool operator==(const pool_look&, const pool_look&) = default;
};

/// A look tells of no larger, or smaller, size that cannot be had, so that the policy turns to
/// other pools, and so does whoever replays the trace.
inline void no_larger(pool_look& x) { x.most = std::min(x.most, std::max(1u, x.members)); }
inline void no_smaller(pool_look& x) { x.least = std::max(x.least, x.members); }

/// The service at one moment. Latencies, work and rate are those of the last window, which should
/// not be longer than the shortest cool-down, so that a step is judged by what came after it.
struct scaling_look {
  scaling_seconds at{0};
  by_pool<pool_look> pools;
  double kv_used = 0; ///< slots that sequences hold; those of the prefix cache alone excluded
  /// Slots that whoever waits for KV asked for in vain. KV in use falls when a sequence ends, and
  /// rises again when the next one gets its slots: without this, a pool that is too small looks
  /// well at times.
  double kv_wanted = 0;
  double kv_slots = 0;                         ///< slots of all members together
  uint32_t queue = 0;                          ///< prompts that wait for admission
  scaling_seconds queue_age{0};                ///< how long the oldest of them has waited
  scaling_seconds tbt_p99{0}, tbt_target{0};   ///< a measured 0: no sample; a target 0: none
  scaling_seconds ttft_p99{0}, ttft_target{0}; ///< likewise
  scaling_seconds model_work{0};               ///< t_m: one iteration occupies a replica so long
  scaling_seconds attention_work{0}; ///< t_a: one iteration occupies the attention pool so long
  uint32_t batches = 1;              ///< n: batches that are decoded concurrently
  double tokens_per_s = 0;           ///< decoded by all batches; a smaller pool needs it known

  /// The pool whose members hold the KV: that of the replicas where there are no shards.
  scaled_pool kv_pool() const {
    return pools[scaled_pool::attention].exists() ? scaled_pool::attention : scaled_pool::model;
  }
  /// The pool that computes prompts.
  scaled_pool prompt_pool() const {
    return pools[scaled_pool::prefill].exists() ? scaled_pool::prefill : scaled_pool::model;
  }
  /// Share of the slots that are in use or waited for.
  double kv_use() const { return kv_slots > 0 ? (kv_used + kv_wanted) / kv_slots : 0; }
  /// Share of the KV in use if its pool had `count` members.
  double kv_use_with(uint32_t count) const {
    const auto members = pools[kv_pool()].members;
    return count > 0 ? kv_use() * members / count : kv_use();
  }
  /// A replica's turn, t_m / (n - 1): attention keeps up while t_a is no longer (L-M19).
  scaling_seconds turn() const { return model_work / std::max(1.0, batches - 1.0); }
  friend bool operator==(const scaling_look&, const scaling_look&) = default;
};

/// When a pool is too small, when too large, and how soon that is acted upon.
struct scaling_settings {
  double kv_high = 0.80;             ///< KV use above which its pool is too small
  double kv_low = 0.50;              ///< KV use below which its pool may be too large
  double queue_high = 4;             ///< waiting prompts for each replica above which a pool is
  scaling_seconds queue_age_high{5}; ///< wait of the oldest prompt above which a pool is too small
  double tbt_high = 1;               ///< share of the target above which a pool is too small
  double ttft_high = 1;              ///< likewise
  double busy_high = 0.80;           ///< largest share of time that fewer prefill members may work
  double margin = 0.10;              ///< by so much a smaller pool stays below the limits above
  uint32_t step = 1;                 ///< allowed sizes that one step goes up or down
  scaling_seconds hold_up{5};        ///< a pool is too small for so long before a step
  scaling_seconds hold_down{30};     ///< a pool is too large for so long before a step
  scaling_seconds cool_up{10};       ///< from the end of the last step to one up
  scaling_seconds cool_down{60};     ///< from the end of the last step to one down
  friend bool operator==(const scaling_settings&, const scaling_settings&) = default;
};

/// The longest window of latencies, work and rate.
constexpr std::chrono::seconds longest_window{10};

/// Seconds before a look that its latencies, work and rate are of: a step is judged by what came
/// after it.
inline std::chrono::seconds window_of(const scaling_settings& x) {
  const auto shortest = std::min(x.cool_up, x.cool_down);
  return std::clamp(std::chrono::floor<std::chrono::seconds>(shortest), std::chrono::seconds{1},
                    longest_window);
}

} // namespace lamella::scheduler
