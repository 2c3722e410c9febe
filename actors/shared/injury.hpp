/// Deliberate harm to worker processes, where `chaos.enabled` allows it (reliability D2).
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
  partition, ///< its links are cut; it goes on
  isolate,   ///< nobody hears it on the data plane for a while, its control link lives
  corrupt,   ///< the header of its next frame is wrong
  drop,      ///< its next frame is never sent
  oom,       ///< it gets no more memory
};

std::string_view to_string(injury x);
std::optional<injury> injury_named(std::string_view text);

/// Injures this process by kill, stop, pause or oom; the others are for who owns device and links.
void injure_process(injury what, std::chrono::milliseconds duration);

} // namespace lamella::actors
