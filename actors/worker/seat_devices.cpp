#include "actors/worker/seat_devices.hpp"

#include "actors/machine/sizing.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

using config::placement;
using scheduler::worker_role;

const std::string& device_option(const config::settings& options, worker_role role) {
  const auto& pools = options.pools;
  const bool with_replicas =
      role == worker_role::prefill && pools.prefill.placement == placement::in_process;
  return with_replicas ? pools.model.device : pool_of(options, role).device;
}

uint32_t ranks_of(const config::settings& options, worker_role role) {
  return role == worker_role::attention ? 1 : options.pools.model.tensor_parallel;
}

uint32_t device_shares(const config::settings& options, worker_role role, unsigned devices) {
  const auto& pools = options.pools;
  const auto begin = config::cuda_index(device_option(options, role));
  auto end = devices;
  for (const config::pool_settings* pool : std::initializer_list<const config::pool_settings*>{
           &pools.model, &pools.attention, &pools.prefill})
    if (pool->placement != placement::remote && config::is_cuda(pool->device)
        && config::cuda_index(pool->device) > begin)
      end = std::min(end, config::cuda_index(pool->device));
  return end > begin ? std::max(1u, (end - begin) / ranks_of(options, role)) : 1;
}

std::string device_of(const config::settings& options, const scheduler::seat& where,
                      unsigned (*devices)()) {
  const auto& first = device_option(options, where.role);
  if (pool_of(options, where.role).placement != placement::local || !config::is_cuda(first))
    return first;
  const auto share = where.index % device_shares(options, where.role, devices());
  return config::device_of_rank(first, share * ranks_of(options, where.role));
}

void warn_of_sharing(const config::settings& options, worker_role role, uint32_t seats) {
  if (!config::is_cuda(device_option(options, role))) return;
  const auto shares = device_shares(options, role, gpu::cuda_devices());
  if (seats > shares)
    spdlog::warn("worker processes share CUDA devices and time-share them role={} processes={} "
                 "with_devices_of_their_own={}",
                 scheduler::to_string(role), seats, shares);
}

} // namespace lamella::actors
