/// Which members of an attention cell with parity miss KV that the others have (decision 23;
/// reliability A6).
#pragma once

#include "scheduler/kv_layout.hpp"
#include "scheduler/slot_set.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// State of a cell's KV when an epoch starts to serve.
struct parity_begin {
  std::vector<uint32_t> lost; ///< members of the cell whose KV is lost for good
  bool rebuilt = false;       ///< a shard's KV was reconstructed from the others
  bool parity_is_new = false; ///< slots written before have no parity
};

/// Members of the cell are numbered; the one behind the `shards` others holds their parity. Any
/// single member is the XOR of all others. Per epoch: open() when its members are known, rebuilt()
/// after a reconstruction, begin() when the epoch starts to serve, if it gets that far. Lost parity
/// delays nothing: it is rebuilt while the epoch serves.
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
  uint32_t slots() const { return made_.slots(); }
  uint32_t slots_made() const { return cache_ == 0 ? 0 : made_.count(); }

  /// The member named by open() is reconstructed. Ignored (returns false) for an older epoch, whose
  /// number may belong to another worker now.
  bool rebuilt(uint64_t epoch) {
    if (epoch != epoch_) return false;
    missing_.clear();
    return rebuilt_ = true;
  }

  /// The epoch serves. After a loss of KV all slots of the cell are freed, so no member misses
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

/// State of a pool's KV when an epoch starts to serve.
struct pool_begin {
  std::vector<uint32_t> lost;                   ///< members of the pool whose KV is lost for good
  std::vector<uint32_t> rebuilt, parity_is_new; ///< cells, as parity_begin has it for one
};

/// The ledgers of the cells of a pool that shall have parity. A cell that gets another number of
/// members or slots begins anew.
class parity_ledgers {
public:
  /// `cells`: that shall have parity, in use or not.
  explicit parity_ledgers(const std::vector<uint32_t>& cells)
      : shall_{cells.begin(), cells.end()} {}

  /// Others shall have it, too, from the next epoch on.
  void add(const std::vector<uint32_t>& cells) { shall_.insert(cells.begin(), cells.end()); }

  /// An epoch with that layout, in which the members `empty` of the pool have lost their KV.
  /// Returns by cell which of its members can be reconstructed from the others and must be before
  /// the epoch serves.
  std::map<uint32_t, uint32_t> open(uint64_t epoch, const kv_layout& layout,
                                    const std::vector<uint32_t>& empty) {
    layout_ = layout;
    std::erase_if(of_, [&](const auto& x) {
      return !layout.in_use(x.first) || !fits(x.second, layout.cells[x.first]);
    });
    std::map<uint32_t, uint32_t> targets;
    for (const auto cell : shall_) {
      if (!layout.in_use(cell)) continue;
      const auto& x = layout.cells[cell];
      std::vector<uint32_t> of_cell;
      const auto members = layout.members_of(cell);
      for (uint32_t i = 0; i < members.size(); ++i)
        if (std::ranges::count(empty, members[i]) > 0) of_cell.push_back(i);
      auto& ledger = of_.try_emplace(cell, x.members, x.slots).first->second;
      if (const auto target = ledger.open(epoch, of_cell, x.parity)) targets[cell] = *target;
    }
    return targets;
  }

  /// Whether all cells that shall have parity are as in the epoch before.
  bool fits(const kv_layout& layout) const {
    return std::ranges::all_of(shall_, [&](uint32_t cell) {
      const auto found = of_.find(cell);
      if (!layout.in_use(cell)) return found == of_.end();
      return found != of_.end() && fits(found->second, layout.cells[cell]);
    });
  }

  /// That of a cell in use which shall have parity.
  parity_ledger& of(uint32_t cell) { return of_.at(cell); }

  /// All begin anew with the next epoch: the KV was copied to other members.
  void clear() { of_.clear(); }

  /// The epoch serves. Of cells without parity, `empty` says which members of the pool have lost
  /// their KV.
  pool_begin begin(const std::vector<uint32_t>& empty) {
    pool_begin result;
    for (const auto member : empty)
      if (!of_.contains(layout_.cell_of(member))) result.lost.push_back(member);
    for (auto& [cell, ledger] : of_) {
      const auto x = ledger.begin();
      for (const auto member : x.lost) result.lost.push_back(layout_.first_of(cell) + member);
      if (x.rebuilt) result.rebuilt.push_back(cell);
      if (x.parity_is_new) result.parity_is_new.push_back(cell);
    }
    std::ranges::sort(result.lost);
    return result;
  }

private:
  static bool fits(const parity_ledger& x, const kv_cell& cell) {
    return x.shards() == cell.members && x.slots() == cell.slots;
  }

  std::set<uint32_t> shall_;
  kv_layout layout_;
  std::map<uint32_t, parity_ledger> of_; ///< by cell, of those in use
};

} // namespace lamella::scheduler
