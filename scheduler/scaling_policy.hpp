/// When a pool gets members, and when members go: the autoscaler's decision (L-M19).
#pragma once

#include "scheduler/scaling_needs.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace lamella::scheduler {

/// One change of one pool.
struct scaling_step {
  scaled_pool pool = scaled_pool::model;
  uint32_t from = 0, to = 0;
  std::string reason; ///< for an operator, without the numbers of members
  friend bool operator==(const scaling_step&, const scaling_step&) = default;
};

struct scaling_decision {
  std::optional<scaling_step> step; ///< to be begun now
  by_pool<uint32_t> wish;           ///< members that each pool should have; 0: no such pool
  by_pool<std::string> why{};       ///< of a wish that this look made; else empty
  friend bool operator==(const scaling_decision&, const scaling_decision&) = default;
};

/// Decides one step at a time, and none while a scaling is under way. A pool must have been too
/// large at each look of a while, or some pool too small at each of them: reasons may take turns,
/// and of the pools that can grow the one that most of these looks found too small does. A
/// cool-down must have passed since the last step ended or a pool changed otherwise. No pool
/// becomes smaller while any is too small, nor smaller than the KV in use needs.
///
/// A size that was too small is not gone back to for ten cool-downs, or until the load is a fifth
/// less. Where the pool had come down to it at the same load, time does not help: that was a
/// mistake, and is not made again at that load. So a constant load leads to constant pools.
///
/// The wish follows without cool-downs, for pools that others scale. It stays through steps of
/// other pools, until the pool has changed or a look says otherwise. Time is an argument of each
/// look and never runs backwards.
class scaling_policy {
public:
  explicit scaling_policy(const scaling_settings& settings = {}) : settings_{settings} {}

  /// From the next look on.
  void set(const scaling_settings& settings) { settings_ = settings; }
  const scaling_settings& settings() const { return settings_; }

  /// One look at the service. Cost: O(sizes that a pool may have).
  scaling_decision look(const scaling_look& x);

private:
  using since = std::optional<scaling_seconds>;
  /// Members that were too few.
  struct bad_size {
    double tokens_per_s = 0; ///< load at which they were
    since until;             ///< not known after that; nothing: known for ever
  };
  struct pool_state {
    uint32_t members = 0; ///< at the last look without a scaling under way
    /// The first and the last of the looks that said so, one within `hold_up` of another; none
    /// where one found no pool too small since then.
    since small, small_last;
    uint32_t small_looks = 0;         ///< how many they are
    since large;                      ///< from when on every look said so
    uint32_t wished = 0;              ///< at the last look
    double load_then = 0;             ///< tokens per second when fewer members were last wished
    uint32_t fell_to = 0;             ///< members after the last change, if they became fewer
    double fell_at = 0;               ///< tokens per second before that
    std::map<uint32_t, bad_size> bad; ///< by members
  };
  /// What a pool should become, and why.
  struct wish {
    uint32_t to = 0;
    std::string reason{};
    bool ready = false; ///< it has been so for long enough
  };

  void settle(scaling_seconds now);
  void note_changes(const scaling_look& x);
  /// Returns whether any pool is too small.
  bool note_small(const scaling_look& x, const by_pool<std::string>& why);
  /// Whether of the pools that can grow by the same means no other was too small more often.
  bool is_smallest(const scaling_look& x, scaled_pool pool) const;
  void note_too_small(pool_state& state, const scaling_look& x) const;
  static bool is_bad(const pool_state& state, uint32_t to, const scaling_look& x);
  wish up(const scaling_look& x, scaled_pool pool, const std::string& why);
  wish down(const scaling_look& x, scaled_pool pool);
  std::optional<scaling_step> choose(const scaling_look& x, const by_pool<wish>& wishes) const;

  scaling_settings settings_;
  since settled_; ///< when the last step had ended
  by_pool<pool_state> states_;
};

} // namespace lamella::scheduler
