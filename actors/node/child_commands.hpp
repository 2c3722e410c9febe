/// The command lines of worker processes that a service starts.
#pragma once

#include "actors/machine/topology.hpp"
#include "actors/worker/child_keeper.hpp"
#include "config/settings.hpp"

#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

/// For the worker of that seat. `program` is empty: this process's; `port`: of the door;
/// `processors`: those that it is bound to, none: all.
child_command child_of(const config::settings& options, const scheduler::seat& where,
                       std::string program, uint16_t port, const std::set<unsigned>& processors);

/// The processors that a child process is bound to: those of a NUMA node, as share_of() has it,
/// but for pools on CUDA devices and those whose `threads` are more than a node has cores. None:
/// it is not bound. `place`: which of the `processes` of its pool or cell it is.
std::set<unsigned> processors_for(const config::pool_settings& pool,
                                  const std::vector<processor>& machine, uint32_t place,
                                  uint32_t processes);

} // namespace lamella::actors
