/// Rows of a batch (V-M14): a seat is the place of a sequence. The batch owns the table; replicas
/// and shards keep copies that follow by numbered changes.
#pragma once

#include "scheduler/slot_pool.hpp"
#include "scheduler/types.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// A change applied before a launch runs: a seat is taken (all runs of the sequence), extended
/// (additional runs), or freed (no runs).
struct seat_change {
  enum class kind : uint8_t { join, extend, leave };
  kind what = kind::join;
  uint32_t seat = 0;
  uint32_t member = 0; ///< number of the slot table with its KV
  std::vector<slot_run> runs;
};

/// The owner's side: hands out seats, lowest first, and collects changes for the next launch.
class seat_table {
public:
  uint32_t join(uint32_t member, std::vector<slot_run> runs) {
    uint32_t seat = 0;
    while (seat < taken_.size() && taken_[seat]) ++seat;
    if (seat == taken_.size()) taken_.push_back(false);
    taken_[seat] = true;
    changes_.push_back({seat_change::kind::join, seat, member, std::move(runs)});
    return seat;
  }

  void extend(uint32_t seat, std::vector<slot_run> runs) {
    changes_.push_back({seat_change::kind::extend, seat, 0, std::move(runs)});
  }

  /// The seat may be taken again from the next launch on.
  void leave(uint32_t seat) {
    taken_.at(seat) = false;
    changes_.push_back({seat_change::kind::leave, seat, 0, {}});
  }

  /// The changes since the last call, and the version of the table that they lead to.
  std::pair<std::vector<seat_change>, uint64_t> take_changes() {
    if (!changes_.empty()) ++version_;
    return {std::exchange(changes_, {}), version_};
  }

private:
  std::vector<bool> taken_;
  std::vector<seat_change> changes_;
  uint64_t version_ = 0;
};

/// The copy of the table in a replica or shard.
class seat_copy {
public:
  struct entry {
    uint32_t member = 0;
    std::vector<slot_run> runs;
  };

  /// Throws std::logic_error when the version does not fit: the copy missed a launch.
  void apply(std::span<const seat_change> changes, uint64_t version) {
    if (version != version_ + (changes.empty() ? 0 : 1))
      throw std::logic_error("seat table version " + std::to_string(version) + " after "
                             + std::to_string(version_));
    version_ = version;
    for (const auto& x : changes) {
      if (x.what == seat_change::kind::join) {
        seats_[x.seat] = {x.member, x.runs};
      } else if (x.what == seat_change::kind::leave) {
        seats_.erase(x.seat);
      } else {
        append(seats_.at(x.seat).runs, x.runs); // long sequences stay few runs
      }
    }
  }

  const entry& at(uint32_t seat) const { return seats_.at(seat); }
  size_t size() const { return seats_.size(); }

private:
  std::map<uint32_t, entry> seats_;
  uint64_t version_ = 0;
};

} // namespace lamella::scheduler
