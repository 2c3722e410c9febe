#include "scheduler/membership/first_epoch.hpp"

namespace lamella::scheduler {

beginning first_epoch(const epoch_shape& shape, const std::set<seat>& seats,
                      const std::set<seat>& ready, const std::set<seat>& failing) {
  if (plan_epoch(shape, ready, {}, true)) return beginning::opens;
  std::set<seat> expected;
  for (const auto& x : seats)
    if (!failing.contains(x)) expected.insert(x);
  if (!lacking_roles(shape, expected, {}).empty()) return beginning::hopeless;
  if (failing.empty()) return beginning::waits;
  const auto now = plan_epoch(shape, ready, {}, false);
  return now && !could_grow(shape, *now, expected) ? beginning::opens : beginning::waits;
}

} // namespace lamella::scheduler
