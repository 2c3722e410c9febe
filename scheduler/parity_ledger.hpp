/// Which members of an attention pool with parity miss KV that the others have (decision 23;
/// reliability A6).
#pragma once

#include "scheduler/slot_set.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// State of the KV when an epoch starts to serve.
struct parity_begin {
  std::vector<uint32_t> lost; ///< shards whose KV is lost for good
  bool rebuilt = false;       ///< a shard's KV was reconstructed from the others
  bool parity_is_new = false; ///< slots written before have no parity
};

/// Members are numbered; the one behind the `shards` others holds their parity. Any single member
/// is the XOR of all others. Per epoch: open() when its members are known, rebuilt() after a
/// reconstruction, begin() when the epoch starts to serve, if it gets that far. Lost parity delays
/// nothing: it is rebuilt while the epoch serves.
class parity_ledger {
public:
  explicit parity_ledger(uint32_t shards, uint32_t slots = 0) : shards_{shards}, made_{slots} {}

  /// `empty`: shards that lost their KV; `with_parity`: whether the parity has a member. Returns
  /// the shard that can be reconstructed from the others and must be before it serves.
  std::optional<uint32_t> open(uint64_t epoch, const std::vector<uint32_t>& empty,
                               bool with_parity) {
    epoch_ = epoch;
    with_parity_ = with_parity;
    missing_.insert(empty.begin(), empty.end());
    // Slots written in this epoch have no parity, even if a member returns with older parity.
    if (!with_parity) missing_.insert(shards_);
    if (!with_parity || missing_.size() != 1 || missing_.contains(shards_)) return std::nullopt;
    return *missing_.begin();
  }

  /// Those of the slots that the member named by open() still misses: a rebuild that another loss
  /// interrupted resumes when that member is back with the same memory, identified by `cache`.
  /// Nothing writes there before an epoch serves.
  std::vector<slot_run> left(uint64_t cache, std::span<const slot_run> runs) {
    if (cache_ != cache) made_ = slot_set{made_.slots()};
    cache_ = cache;
    return made_.part(runs, false);
  }
  /// These slots are rebuilt in the memory `cache`; ignored unless left() was last called with it.
  void made(uint64_t cache, std::span<const slot_run> runs) {
    if (cache_ == cache) made_.insert(runs);
  }

  uint32_t shards() const { return shards_; }
  uint32_t slots_made() const { return cache_ == 0 ? 0 : made_.count(); }

  /// The member named by open() is reconstructed. Ignored (returns false) for an older epoch, whose
  /// number may belong to another worker now.
  bool rebuilt(uint64_t epoch) {
    if (epoch != epoch_) return false;
    missing_.clear();
    return rebuilt_ = true;
  }

  /// The epoch serves. After a loss of KV no slot of the pool is reused, so no member misses
  /// anything from here on. New parity counts as complete, too: the owner of the slot tables tracks
  /// its missing slots.
  parity_begin begin() {
    parity_begin result;
    for (auto member : missing_)
      if (member < shards_) result.lost.push_back(member);
    result.rebuilt = std::exchange(rebuilt_, false);
    result.parity_is_new = with_parity_ && result.lost.empty() && missing_.contains(shards_);
    if (!result.lost.empty() || with_parity_) missing_.clear();
    cache_ = 0; // from here on slots are written
    if (!with_parity_) missing_.insert(shards_);
    return result;
  }

private:
  uint32_t shards_;
  uint64_t epoch_ = 0;
  bool with_parity_ = false;
  bool rebuilt_ = false; ///< since the last that served
  std::set<uint32_t> missing_;
  uint64_t cache_ = 0; ///< where `made_` is; 0: nowhere
  slot_set made_;
};

} // namespace lamella::scheduler
