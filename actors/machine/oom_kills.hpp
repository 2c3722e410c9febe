/// Number of processes killed by the kernel for lack of memory, where available.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::actors {

/// Where the control group of this process counts them, from the text of /proc/self/cgroup: v2, or
/// the memory controller of v1. Empty when it is in none of the two.
std::string oom_file_of(std::string_view cgroups);

/// The number behind `oom_kill` in the text of such a file.
std::optional<uint64_t> oom_kills_in(std::string_view text);

/// The number of this process's control group; nothing where not available.
std::optional<uint64_t> oom_kills();

} // namespace lamella::actors
