#include "actors/worker/seat_devices.hpp"

#include "actors/machine/seat_groups.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

using config::placement;
using scheduler::seat_group;
using scheduler::worker_role;

const std::string& device_option(const config::settings& options, const seat_group& group) {
  const auto& pools = options.pools;
  const bool with_replicas =
      group.role == worker_role::prefill && pools.prefill.placement == placement::in_process;
  return with_replicas ? pools.model.device : pool_of(options, group).device;
}

uint32_t ranks_of(const config::settings& options, worker_role role) {
  return role == worker_role::attention ? 1 : options.pools.model.tensor_parallel;
}

uint32_t device_shares(const config::settings& options, const seat_group& group, unsigned devices) {
  const auto& pools = options.pools;
  const auto begin = config::cuda_index(device_option(options, group));
  auto end = devices;
  const auto up_to = [&](const config::pool_settings& pool) {
    if (pool.placement != placement::remote && config::is_cuda(pool.device)
        && config::cuda_index(pool.device) > begin)
      end = std::min(end, config::cuda_index(pool.device));
  };
  up_to(pools.model);
  for (const auto& [name, cell] : pools.attention.resolved()) up_to(cell);
  up_to(pools.prefill);
  return end > begin ? std::max(1u, (end - begin) / ranks_of(options, group.role)) : 1;
}

std::string device_of(const config::settings& options, const seat_group& group, uint32_t place,
                      unsigned (*devices)()) {
  const auto& first = device_option(options, group);
  if (pool_of(options, group).placement != placement::local || !config::is_cuda(first))
    return first;
  const auto share = place % device_shares(options, group, devices());
  return config::device_of_rank(first, share * ranks_of(options, group.role));
}

void warn_of_sharing(const config::settings& options, const seat_group& group, uint32_t seats) {
  if (!config::is_cuda(device_option(options, group))) return;
  const auto shares = device_shares(options, group, gpu::cuda_devices());
  if (seats > shares)
    spdlog::warn("worker processes share CUDA devices and time-share them role={}{} processes={} "
                 "with_devices_of_their_own={}",
                 scheduler::to_string(group.role), group.cell.empty() ? "" : " cell=" + group.cell,
                 seats, shares);
}

} // namespace lamella::actors
