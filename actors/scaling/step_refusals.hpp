/// Steps of AUTOSCALER that MEMBERSHIP refused or rolled back (L-M19).
#pragma once

#include "actors/protocol/pools.hpp"
#include "scheduler/scaling_policy.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// A step that failed is not tried again for a while: its pool stays within its members, and other
/// pools have their turn. Time is an argument, as that of looks.
class step_refusals {
public:
  /// MEMBERSHIP has refused that step: no other try for two cool-downs.
  void refused(const scheduler::scaling_step& step, scheduler::scaling_seconds now,
               const scheduler::scaling_settings& settings);

  /// That step is under way: the pool or cell `pool` shall have so many members.
  void begun(const scheduler::scaling_step& step, std::string pool, uint32_t members);

  /// The newest changes of pools and cells. Where the step that was begun was rolled back, there is
  /// no other try for two cool-downs, and for twice as long each further time in a row.
  void note(const std::vector<pool_change>& changes, scheduler::scaling_seconds now,
            const scheduler::scaling_settings& settings);

  /// Takes from the pools the sizes that are not to be tried now.
  void limit(scheduler::by_pool<scheduler::pool_look>& pools, scheduler::scaling_seconds now) const;

private:
  struct refusal {
    scheduler::scaling_seconds until{};
    bool larger = false;
    uint32_t rolled_back = 0; ///< times in a row
  };
  struct change {
    scheduler::scaled_pool of = scheduler::scaled_pool::model;
    bool larger = false;
    std::string pool; ///< as MEMBERSHIP names it
    uint32_t members = 0;
  };
  scheduler::by_pool<refusal> refusals_;
  std::optional<change> begun_;
};

} // namespace lamella::actors
