/// What a running process takes of a new configuration.
#pragma once

#include "config/schema.hpp"
#include "config/settings.hpp"

#include <vector>

namespace lamella::config {

/// The outcome of laying new settings over those in force.
struct live_change {
  settings value; ///< those in force, with the live keys of the new ones
  /// Keys whose values differ, in the order of the table. In `value` are those that need no
  /// restart; the others are as they were.
  std::vector<difference> changes;
  /// Cells of the attention pool that are new, or that had no members and get other settings than
  /// live ones.
  std::vector<std::string> cells;
  /// Cells in force that are wanted no more, this time or before; they are to have no members.
  std::vector<std::string> gone;
  /// Rules that `value` breaks, though the new settings alone may keep them: then nothing of it may
  /// be taken.
  std::vector<rule_violation> violations;
};

/// Takes the live keys of `wanted`, options marked reload::live, and what take_cells() can. Leaves
/// all others: among these is the size of a prefill pool without seats of its own.
live_change take_live(const settings& in_force, const settings& wanted);

} // namespace lamella::config
