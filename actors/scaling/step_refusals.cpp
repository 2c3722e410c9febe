#include "actors/scaling/step_refusals.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

constexpr uint32_t doublings = 5; ///< of the time until another try, at most

/// Longer than until the next step, so that it is another pool's.
scheduler::scaling_seconds rest(bool larger, const scheduler::scaling_settings& x) {
  return 2 * (larger ? x.cool_up : x.cool_down);
}

} // namespace

void step_refusals::refused(const scheduler::scaling_step& step, scheduler::scaling_seconds now,
                            const scheduler::scaling_settings& settings) {
  const bool larger = step.to > step.from;
  auto& x = refusals_[step.pool];
  x.until = now + rest(larger, settings);
  x.larger = larger;
}

void step_refusals::begun(const scheduler::scaling_step& step, std::string pool, uint32_t members) {
  begun_ = change{step.pool, step.to > step.from, std::move(pool), members};
}

void step_refusals::note(const std::vector<pool_change>& changes, scheduler::scaling_seconds now,
                         const scheduler::scaling_settings& settings) {
  if (!begun_) return;
  const auto found = std::ranges::find(changes, begun_->pool, &pool_change::pool);
  if (found != changes.end() && found->state == "under way") return;
  const bool ours = found != changes.end() && found->to == begun_->members;
  auto& x = refusals_[begun_->of];
  if (ours && found->state == "rolled back") {
    if (x.larger != begun_->larger) x.rolled_back = 0;
    x.larger = begun_->larger;
    x.until = now + rest(x.larger, settings) * (1u << std::min(x.rolled_back, doublings));
    ++x.rolled_back;
  } else if (ours && found->state == "done") {
    x.rolled_back = 0;
  }
  begun_.reset();
}

void step_refusals::limit(scheduler::by_pool<scheduler::pool_look>& pools,
                          scheduler::scaling_seconds now) const {
  for (const auto pool : scheduler::scaled_pools)
    if (const auto& x = refusals_[pool]; now < x.until)
      x.larger ? no_larger(pools[pool]) : no_smaller(pools[pool]);
}

} // namespace lamella::actors
