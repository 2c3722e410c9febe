#include "config/cells.hpp"

namespace lamella::config {

namespace {

/// Sizes of one cell between which the autoscaler may choose.
void check_cell_bounds(const std::string& key, const attention_pool_settings& cell,
                       const attention_pools_settings& pool, std::vector<rule_violation>& found) {
  const auto n = [](uint32_t x) { return std::to_string(x); };
  if (cell.least == 0 && cell.most == 0) return;
  if (!pool.autoscaled())
    found.push_back({{key + ".min", key + ".max", "pools.attention.max"},
                     "min and max of a cell have no effect without a max of the pool",
                     "set pools.attention.max, the members that all cells may have together"});
  if (cell.members < cell.least)
    found.push_back(
        {{key + ".members", key + ".min"},
         "the cell begins with " + n(cell.members) + " members, fewer than min " + n(cell.least),
         "raise members or lower min"});
  if (cell.autoscaled() && cell.members > cell.most)
    found.push_back(
        {{key + ".members", key + ".max"},
         "the cell begins with " + n(cell.members) + " members, more than max " + n(cell.most),
         "lower members or raise max"});
}

} // namespace

void check_cells(const attention_pools_settings& pool, std::vector<rule_violation>& found) {
  const std::string pools = "pools.attention.";
  if (pool.all_members() == 0)
    found.push_back(
        {{pools + "members"},
         "an attention pool needs at least one member",
         "give " + std::string{pool.cells.empty() ? "it" : "one of its cells"} + " 1 or more"});
  if (pool.cells.empty()) return;
  if (pool.autoscaled() && pool.any(placement::remote))
    found.push_back(
        {{pools + "max", pools + "cells"},
         "a pool with cells that follows workers of other hosts is not available in this version",
         "set " + pools + "max to its default, or give up " + pools + "cells"});
  const bool on_cuda = is_cuda(pool.cells.begin()->second.device);
  for (const auto& [name, cell] : pool.cells) {
    if (is_cuda(cell.device) != on_cuda)
      found.push_back(
          {{pools + "cells." + name + ".device"},
           "a sequence may move to any cell, but the kernels of CUDA devices and of the "
           "host round differently",
           "give all cells a CUDA device, or none"});
    check_cell_bounds(pools + "cells." + name, cell, pool, found);
  }
}

} // namespace lamella::config
