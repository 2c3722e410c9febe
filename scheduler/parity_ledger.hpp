/// Which members of an attention pool with parity lack KV that the others have (decision 23;
/// reliability A6).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace lamella::scheduler {

/// Members are numbered; the one behind the `shards` others holds their parity. Any single member
/// is the XOR of all others. Goes from epoch to epoch: open() when its members are known, rebuilt()
/// when that was done, lost() when it begins to serve, if it comes that far.
class parity_ledger {
public:
  explicit parity_ledger(uint32_t shards) : shards_{shards} {}

  /// `empty` have lost their KV, and `with_parity` says whether the parity has a member. Returns
  /// the one that can be rebuilt from the others.
  std::optional<uint32_t> open(uint64_t epoch, const std::vector<uint32_t>& empty,
                               bool with_parity) {
    epoch_ = epoch;
    with_parity_ = with_parity;
    missing_.insert(empty.begin(), empty.end());
    // What is written in this epoch has no parity, whoever comes back with an older one.
    if (!with_parity) missing_.insert(shards_);
    return with_parity && missing_.size() == 1 ? std::optional{*missing_.begin()} : std::nullopt;
  }

  /// The member that open() named has what the others have. Of an older epoch it means nothing:
  /// somebody else may have its number now.
  void rebuilt(uint64_t epoch) {
    if (epoch == epoch_) missing_.clear();
  }

  /// The shards whose KV is lost for good. When there are any, nothing of the pool's KV is used
  /// again, so that from here on nobody lacks anything.
  std::vector<uint32_t> lost() {
    std::vector<uint32_t> result;
    for (auto member : missing_)
      if (member < shards_) result.push_back(member);
    if (!result.empty()) {
      missing_.clear();
      if (!with_parity_) missing_.insert(shards_);
    }
    return result;
  }

private:
  uint32_t shards_;
  uint64_t epoch_ = 0;
  bool with_parity_ = false;
  std::set<uint32_t> missing_;
};

} // namespace lamella::scheduler
