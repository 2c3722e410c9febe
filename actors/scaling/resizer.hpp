/// RESIZER: sees to the sizes of pools, the partitions of cells and the memory of members that a
/// reload asked for, one change after the other.
#pragma once

#include "actors/protocol/actors.hpp"
#include "config/settings.hpp"
#include "scheduler/membership/pool_layout.hpp"
#include "scheduler/membership/seats.hpp"

#include <caf/all.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// A pool or one of its cells, its size of before, and the one that it shall have.
struct resize_wish {
  scheduler::worker_role role = scheduler::worker_role::model;
  uint32_t from = 0, members = 0;
  std::string cell{}; ///< its name; empty: the pool
  /// Of a cell, before and as it shall be; nothing: it stays as it is.
  std::optional<config::partition> cut_from{}, cut{};
  /// KV of each member in bytes, before and as it shall be; 0: not given.
  uint64_t kv_from = 0, kv = 0;
  bool kv_of_all = false; ///< it is `kv.bytes`
  /// The configured size is the one of before: the pool keeps the one that it has, which may be
  /// another by hand.
  bool keeps_members = false;
  bool changes_kv() const { return kv_from != kv; }
};

/// What changes its size, as MEMBERSHIP names it: "attention" or "attention/east".
std::string pool_name(const resize_wish& x);

/// The keys that it comes from, one to three: "pools.attention.members" or
/// "pools.attention.cells.east.members", then those of `partition` and
/// `kv_bytes`, or `kv.bytes`.
std::vector<std::string> keys_of(const resize_wish& x);

/// What MEMBERSHIP is asked for.
pool_resize question_of(const resize_wish& x);

/// The sizes with that one, and its partition, as wished. `pool`: with the cells by name.
scheduler::pool_sizes with_wish(const scheduler::pool_sizes& sizes, const resize_wish& x,
                                const config::attention_pools_settings& pool);

/// The same in settings, which get the size, the partition and the `kv_bytes` of before.
void take_back(config::settings& settings, const resize_wish& x);

/// The pools whose configured sizes, partitions or `kv_bytes` differ, those that shall have no
/// members last; in `after` those of the configuration that shall hold.
std::vector<resize_wish> resizes_between(const config::settings& before,
                                         const config::settings& after);

/// Cells that have no members in the configuration shall lose those that they got by hand, after
/// all other wishes.
void empty_cells(std::vector<resize_wish>& wishes, const std::vector<std::string>& cells);

/// The sizes of pools with workers of their own, of a configuration.
scheduler::pool_sizes configured_sizes(const config::settings& x);

/// What has become of changes that a reload asked for: from RESIZER to the next reload.
/// Thread-safe.
class resize_outcomes {
public:
  /// RESIZER has some to see to.
  void begin() {
    std::lock_guard lock{mutex_};
    under_way_ = true;
  }
  /// It has seen to all of them.
  void end() {
    std::lock_guard lock{mutex_};
    under_way_ = false;
    waiting_.clear();
  }
  /// These wait for the one before them to end, in their order.
  void wait(std::vector<resize_wish> wishes) {
    std::lock_guard lock{mutex_};
    waiting_ = std::move(wishes);
  }
  std::vector<resize_wish> waiting() const {
    std::lock_guard lock{mutex_};
    return waiting_;
  }
  void failed(const resize_wish& x) {
    std::lock_guard lock{mutex_};
    failed_.push_back(x);
  }
  bool under_way() const {
    std::lock_guard lock{mutex_};
    return under_way_;
  }
  /// Changes that were rolled back or refused, since the last call.
  std::vector<resize_wish> take_failed() {
    std::lock_guard lock{mutex_};
    return std::exchange(failed_, {});
  }

private:
  mutable std::mutex mutex_;
  bool under_way_ = false;
  std::vector<resize_wish> failed_, waiting_;
};

/// The changes that wait, as status tells of them: "queued"; `to` may be members_as_they_are.
std::vector<pool_change> queued_changes(const resize_outcomes& outcomes);

struct resizer_config {
  membership_actor members;
  std::deque<resize_wish> wishes; ///< in their order; the first one was asked for already
  std::shared_ptr<resize_outcomes> outcomes;
};

struct resizer_state {
  resizer_config config;
  bool asked = true; ///< for the first of the wishes
  const char* name = "resizer";
};

/// Ends when the last change has ended, or with MEMBERSHIP. It asks for a change when no other is
/// under way, asks again where one began meanwhile, and goes on with the next one after a failure.
caf::behavior resizer(caf::stateful_actor<resizer_state>* self, resizer_config config);

} // namespace lamella::actors
