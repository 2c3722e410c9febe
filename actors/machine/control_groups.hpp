/// Limits of the kernel's control groups, of version 1 or 2, for this process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::actors {

/// The groups that bound one controller: the process's own first, then its parents up to the root.
/// Only those of a container are seen from inside it.
struct control_groups {
  int version = 0; ///< 0: there are none
  std::vector<std::string> folders;
};

/// From the text of /proc/self/cgroup; `controller` is `memory` or `cpu`.
control_groups groups_of(std::string_view text, std::string_view controller,
                         const std::string& root = "/sys/fs/cgroup");

/// The text of a small file of /proc or /sys; empty where it cannot be read.
std::string kernel_file(const std::string& path);

/// Those of this process.
control_groups own_groups(std::string_view controller);

/// Bytes, the minimum of all groups; the largest number where there is no limit.
uint64_t memory_bound(const control_groups& groups);

/// Processor time per time, the minimum of all groups; a huge number where there is no limit.
double processor_bound(const control_groups& groups);

} // namespace lamella::actors
