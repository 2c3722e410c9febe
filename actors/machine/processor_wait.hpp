/// How long a process of this machine has waited for processors.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace lamella::actors {

/// Time that the threads of a process were ready and did not run, all together, since they began;
/// nothing where the system does not tell. A process that hangs or is stopped waits for no
/// processor. Cost: a small file for each thread.
std::optional<std::chrono::nanoseconds> waited_for_processors(uint32_t pid);

} // namespace lamella::actors
