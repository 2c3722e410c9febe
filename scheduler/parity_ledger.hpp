/// Which members of an attention pool with parity lack KV that the others have (decision 23;
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

/// With what an epoch begins to serve.
struct parity_begin {
  std::vector<uint32_t> lost; ///< shards whose KV is lost for good
  bool rebuilt = false;       ///< a shard's KV was made of the others'
  bool parity_is_new = false; ///< it has the parity of nothing that was written before
};

/// Members are numbered; the one behind the `shards` others holds their parity. Any single member
/// is the XOR of all others. Goes from epoch to epoch: open() when its members are known, rebuilt()
/// when that was done, begin() when it begins to serve, if it comes that far. A lost parity holds
/// nobody up: it is made again while the epoch serves.
class parity_ledger {
public:
  explicit parity_ledger(uint32_t shards, uint32_t slots = 0) : shards_{shards}, made_{slots} {}

  /// `empty` have lost their KV, and `with_parity` says whether the parity has a member. Returns
  /// the shard that can be rebuilt from the others, and must be before it serves.
  std::optional<uint32_t> open(uint64_t epoch, const std::vector<uint32_t>& empty,
                               bool with_parity) {
    epoch_ = epoch;
    with_parity_ = with_parity;
    missing_.insert(empty.begin(), empty.end());
    // What is written in this epoch has no parity, whoever comes back with an older one.
    if (!with_parity) missing_.insert(shards_);
    if (!with_parity || missing_.size() != 1 || missing_.contains(shards_)) return std::nullopt;
    return *missing_.begin();
  }

  /// What of these slots the member that open() named lacks still: a rebuild that another loss has
  /// interrupted goes on where it was, when that member is there again with the same memory, which
  /// `cache` names. Nothing writes there before an epoch serves.
  std::vector<slot_run> left(uint64_t cache, std::span<const slot_run> runs) {
    if (cache_ != cache) made_ = slot_set{made_.slots()};
    cache_ = cache;
    return made_.part(runs, false);
  }
  /// These are made there. Of another memory than left() was told last it means nothing.
  void made(uint64_t cache, std::span<const slot_run> runs) {
    if (cache_ == cache) made_.insert(runs);
  }

  uint32_t slots_made() const { return cache_ == 0 ? 0 : made_.count(); }

  /// The member that open() named has what the others have. Of an older epoch it means nothing:
  /// somebody else may have its number now. Says whether it means something.
  bool rebuilt(uint64_t epoch) {
    if (epoch != epoch_) return false;
    missing_.clear();
    return rebuilt_ = true;
  }

  /// The epoch serves. When KV is lost, nothing of the pool's is used again, so that from here on
  /// nobody lacks anything; nor does a new parity: whoever has the slot tables knows what it lacks.
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
