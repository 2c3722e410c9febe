/// Which devices the seats of pools are on.
#pragma once

#include "config/settings.hpp"
#include "gpu/cuda_module.hpp"
#include "scheduler/membership/seats.hpp"

#include <string>

namespace lamella::actors {

/// The option of a pool: where its first worker computes. Prompts without seats of their own run on
/// the replicas.
const std::string& device_option(const config::settings& options, scheduler::worker_role role);

/// Devices of one worker (L-M03).
uint32_t ranks_of(const config::settings& options, scheduler::worker_role role);

/// How many workers of a pool on CUDA devices have some of their own on a machine with so many:
/// they take those from its option on, one for each rank, up to where another pool of this machine
/// begins. At least 1: those beyond share.
uint32_t device_shares(const config::settings& options, scheduler::worker_role role,
                       unsigned devices);

/// The first device of a seat. Child processes go round the shares of their pool; all others have
/// its option. `devices` counts the CUDA devices of this machine, and is asked only if there are
/// any in the option.
std::string device_of(const config::settings& options, const scheduler::seat& where,
                      unsigned (*devices)() = gpu::cuda_devices);

/// Tells the log where a pool has more child processes than devices for them: it works, and those
/// of one device take turns.
void warn_of_sharing(const config::settings& options, scheduler::worker_role role, uint32_t seats);

} // namespace lamella::actors
