#include "config/cells.hpp"

namespace lamella::config {

void check_cells(const attention_pools_settings& pool, std::vector<rule_violation>& found) {
  const std::string pools = "pools.attention.";
  if (pool.all_members() == 0)
    found.push_back(
        {{pools + "members"},
         "an attention pool needs at least one member",
         "give " + std::string{pool.cells.empty() ? "it" : "one of its cells"} + " 1 or more"});
  if (pool.cells.empty()) return;
  const auto refuse = [&](const std::string& key, const std::string& what) {
    found.push_back({{pools + key, pools + "cells"},
                     what + " is not available in this version",
                     "set " + pools + key + " to its default, or give up " + pools + "cells"});
  };
  if (pool.partition == partition::requests)
    refuse("partition", "partition: requests beside cells (each is cut by heads)");
  if (pool.parity) refuse("parity", "parity of a pool with cells");
  if (pool.autoscaled() && pool.any(placement::remote))
    refuse("max", "a pool with cells that follows workers of other hosts");
  const bool on_cuda = is_cuda(pool.cells.begin()->second.device);
  for (const auto& [name, cell] : pool.cells) {
    if (is_cuda(cell.device) != on_cuda)
      found.push_back(
          {{pools + "cells." + name + ".device"},
           "a sequence may move to any cell, but the kernels of CUDA devices and of the "
           "host round differently",
           "give all cells a CUDA device, or none"});
    const auto own = [&](const char* key, bool differs) {
      if (differs)
        found.push_back(
            {{pools + "cells." + name + "." + key},
             std::string{"a cell with "} + key + " of its own is not available in this version",
             "set " + pools + key + " for all cells"});
    };
    own("partition", cell.partition != pool.partition);
    own("parity", cell.parity != pool.parity);
    own("min", cell.least != pool.least);
    own("max", cell.most != pool.most);
  }
}

} // namespace lamella::config
