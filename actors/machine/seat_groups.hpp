/// Groups of seats whose workers can replace each other: of a pool, or of attention cells with a
/// device, a placement or threads of their own (L-M03, L-M23).
#pragma once

#include "config/settings.hpp"
#include "scheduler/membership/seats.hpp"

#include <string>
#include <vector>

namespace lamella::actors {

/// All groups with seats, in order of roles. O(cells^2).
std::vector<scheduler::seat_group> seat_groups(const config::settings& options);

/// `cell` of the group of each named attention cell, as epoch_shape::cell_seats.
std::vector<std::string> cell_seats(const config::settings& options);

/// Members of a complete pool, the parity member included.
uint32_t members_needed(const config::settings& options, scheduler::worker_role role);

/// The settings of the pool a role belongs to.
const config::pool_settings& pool_of(const config::settings& options, scheduler::worker_role role);

/// The settings of a group: of its first cell, or of its pool.
const config::pool_settings& pool_of(const config::settings& options,
                                     const scheduler::seat_group& group);

/// Whether all seats of a role are of the service's own process.
bool is_in_process(const config::settings& options, scheduler::worker_role role);

/// Members of a group without missing ones, that with the parity included; without spares.
uint32_t members_needed(const config::settings& options, const scheduler::seat_group& group);

/// Spares of a group: cells that share their seats share these too, the largest number of them.
uint32_t spares_of(const config::settings& options, const scheduler::seat_group& group);

} // namespace lamella::actors
