/// How much memory this process can still write before the kernel has to end something.
#pragma once

#include "actors/machine/control_groups.hpp"

#include <cstdint>
#include <string_view>

namespace lamella::actors {

/// Bytes that the machine has for new pages, from the text of /proc/meminfo: "MemAvailable". The
/// largest number where it says none.
uint64_t available_in(std::string_view meminfo);

/// Bytes that the groups leave: of each, its limit less what is in use and cannot be dropped
/// (cached files can). The largest number where there is no limit.
uint64_t left_by(const control_groups& groups);

/// The least of both, for this process now. Cost: a few small files are read.
uint64_t free_memory();

} // namespace lamella::actors
