/// Devices of the seats of pools.
#pragma once

#include "config/settings.hpp"
#include "gpu/cuda_module.hpp"
#include "scheduler/membership/seats.hpp"

#include <string>

namespace lamella::actors {

/// The device option of a group: the device of its first worker. Prefill without own seats runs on
/// the replicas.
const std::string& device_option(const config::settings& options,
                                 const scheduler::seat_group& group);

/// Devices of one worker (L-M03).
uint32_t ranks_of(const config::settings& options, scheduler::worker_role role);

/// Number of workers of a CUDA group with devices of their own, on a machine with `devices`
/// devices: workers take devices from the option on, one for each rank, up to the first device of
/// another pool or cell of this machine. At least 1: further workers share.
uint32_t device_shares(const config::settings& options, const scheduler::seat_group& group,
                       unsigned devices);

/// The first device of a seat, the `place`-th of its group. Child processes take the shares of
/// their group in turn; all others use its option. `devices` counts the CUDA devices of this
/// machine, and is called only for CUDA options.
std::string device_of(const config::settings& options, const scheduler::seat_group& group,
                      uint32_t place, unsigned (*devices)() = gpu::cuda_devices);

/// Logs a group with more child processes than devices: it works, and processes on one device
/// time-share it.
void warn_of_sharing(const config::settings& options, const scheduler::seat_group& group,
                     uint32_t seats);

} // namespace lamella::actors
