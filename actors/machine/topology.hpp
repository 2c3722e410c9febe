/// Which processors of a machine share a core, and which memory is near them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::actors {

/// A processor as the kernel numbers it.
struct processor {
  unsigned number = 0;
  unsigned core = 0;     ///< the lowest number of those that share its core, with it
  unsigned node = 0;     ///< NUMA node
  unsigned capacity = 0; ///< of its kind of core; equal where all are of one kind
};

/// "0-3,8" as the kernel writes it; nothing for a text that is no such list, or has a number above
/// 65,535.
std::optional<std::set<unsigned>> processors_of(std::string_view list);

/// The text of such a list.
std::string list_of(const std::set<unsigned>& processors);

/// What the kernel says of these processors below `sys` (/sys). What it does not say counts as the
/// usual: a core of its own, node 0, one kind of core.
std::vector<processor> topology_of(const std::set<unsigned>& allowed,
                                   const std::filesystem::path& sys);

/// The processors that compute: one of each core of the fastest kind, or all of these cores where
/// there are fewer than four. Work is divided equally, so a second thread of a core shares its
/// units, and a slower core is waited for.
std::set<unsigned> computing(const std::vector<processor>& all);

/// The processors of each NUMA node that has some, in order of nodes.
std::vector<std::set<unsigned>> by_node(const std::vector<processor>& all);

/// The processors of one of several processes that compute alike: those of a node, in turn, where
/// there are at least as many of them as nodes; else all. `place`: which of them, from 0.
std::set<unsigned> share_of(const std::vector<processor>& all, uint32_t place, uint32_t processes);

/// Where this process may run.
std::set<unsigned> allowed_processors();

/// The processors of this machine where this process may run.
std::vector<processor> own_topology();

/// Lets this thread, and those that it starts from here on, run there alone, so that memory they
/// touch first is near, not spread. Throws std::system_error where none of them is allowed.
void bind_to(const std::set<unsigned>& processors);

/// Where this thread, and those that it starts, may run on several NUMA nodes: spreads memory that
/// they touch first over all of these, page by page, so that no node serves all. Returns the
/// number of nodes; 1: nothing was done, as where somebody has chosen a policy (numactl). Best
/// effort.
size_t spread_memory();

} // namespace lamella::actors
