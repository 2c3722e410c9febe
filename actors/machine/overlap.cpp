#include "actors/machine/overlap.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using config::placement;

/// Threads of the workers of a pool on the processors of this host.
unsigned threads_here(const config::pool_settings& pool, unsigned processors) {
  if (pool.placement != placement::local || config::is_cuda(pool.device)) return 0;
  const auto each = pool.threads.value_or(std::max(1u, processors / std::max(1u, pool.members)));
  return each * pool.members;
}

} // namespace

std::string why_no_overlap(const config::settings& options, unsigned processors) {
  const auto& model = options.pools.model;
  auto threads = threads_here(model, processors);
  bool some_here = threads > 0, all_apart = true;
  for (const auto& [name, cell] : options.pools.attention.resolved()) {
    const bool here = model.placement != placement::remote && cell.placement != placement::remote;
    if (here && config::is_cuda(model.device) && cell.device == model.device)
      return "replicas and shards share " + model.device;
    if (config::is_cuda(model.device) || config::is_cuda(cell.device)) continue;
    const bool in_this_process =
        model.placement == placement::in_process || cell.placement == placement::in_process;
    if (here && in_this_process) return "replicas and shards share the processors of this process";
    if (cell.placement == placement::local) all_apart = false;
    threads += threads_here(cell, processors);
  }
  if (some_here && !all_apart && threads > processors)
    return "replicas and shards have " + std::to_string(threads) + " threads on "
           + std::to_string(processors) + " processors";
  return "";
}

} // namespace lamella::actors
