#include "config/reload.hpp"

#include "config/options.hpp"

namespace lamella::config {

live_change take_live(const settings& in_force, const settings& wanted) {
  live_change result;
  result.value = in_force;
  result.changes = diff(in_force, wanted);
  for (const auto& x : options())
    if (x.when == reload::live) x.set(result.value, x.get(wanted));
  result.violations = check(result.value);
  return result;
}

} // namespace lamella::config
