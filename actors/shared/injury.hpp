/// Fault injection into worker processes, where `chaos.enabled` allows it (reliability D2).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lamella::actors {

enum class injury : uint8_t {
  kill,      ///< SIGKILL
  stop,      ///< SIGSTOP, for good
  pause,     ///< SIGSTOP, and SIGCONT after a while
  slow,      ///< every step of its device takes longer, for a while
  partition, ///< its links are cut; the process goes on
  isolate,   ///< cut off from the data plane for a while, control link up
  corrupt,   ///< the header of its next frame is wrong
  drop,      ///< its next frame is never sent
  oom,       ///< allocations fail
};

std::string_view to_string(injury x);
std::optional<injury> injury_named(std::string_view text);

/// Injects kill, stop, pause or oom into this process; the other faults are injected by the owner
/// of device and links.
void injure_process(injury what, std::chrono::milliseconds duration);

} // namespace lamella::actors
