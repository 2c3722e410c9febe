/// What MEMBERSHIP has to know of the attention cells of other settings.
#pragma once

#include "actors/membership/cell_roster.hpp"
#include "config/settings.hpp"

#include <map>
#include <set>
#include <string>

namespace lamella::actors {

/// From a change of a pool's size until it is rolled back, where workers of other hosts have a
/// part: they are started by somebody who has to hear of the change first.
constexpr caf::timespan remote_resize = std::chrono::minutes{10};

/// Seats of each group beyond its members, where it has some: for spares and for parity.
std::map<scheduler::seat_group, uint32_t> extra_seats_of(const config::settings& options);

/// The seats of these settings. A group without members has none.
scheduler::seat_plan seats_of(const config::settings& options);

/// The cells of these settings, of which those with such names are new or get other settings.
/// Without `take`.
cell_roster roster_of(const config::settings& options, const std::set<std::string>& taken);

/// The settings of a running service with the cells of such names from others: in the place of its
/// own ones, or behind them in the order of the others. A pool without cells is the first of them
/// then. Each cell has the `kv.bytes` of the others where it has no `kv_bytes`.
config::settings with_cells(const config::settings& running, const config::settings& other,
                            const std::set<std::string>& taken);

} // namespace lamella::actors
