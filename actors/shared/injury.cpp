#include "actors/shared/injury.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <csignal>
#include <ctime>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamella::actors {

namespace {

constexpr std::array<std::string_view, 9> names{"kill",    "stop",    "pause", "slow", "partition",
                                                "isolate", "corrupt", "drop",  "oom"};

/// A stopped process cannot wake itself: a grandchild does, which nobody has to wait for.
void stop_for(std::chrono::milliseconds duration) {
  const auto me = getpid();
  const auto child = fork();
  if (child == 0) {
    if (fork() == 0) { // only what is safe in a copy of a process with threads
      timespec rest{duration.count() / 1000, duration.count() % 1000 * 1'000'000};
      nanosleep(&rest, nullptr);
      ::kill(me, SIGCONT);
    }
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  raise(SIGSTOP);
}

/// From now on the address space cannot grow: the next larger allocation fails.
void take_memory_away() {
  std::ifstream file{"/proc/self/statm"};
  uint64_t pages = 0;
  file >> pages;
  const rlim_t now = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const rlimit limit{now, now};
  setrlimit(RLIMIT_AS, &limit);
}

} // namespace

std::string_view to_string(injury x) { return names[static_cast<size_t>(x)]; }

std::optional<injury> injury_named(std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<injury>(found - names.begin());
}

void injure_process(injury what, std::chrono::milliseconds duration) {
  switch (what) {
  case injury::kill:
    raise(SIGKILL);
    return;
  case injury::stop:
    raise(SIGSTOP);
    return;
  case injury::pause:
    stop_for(duration);
    return;
  case injury::oom:
    take_memory_away();
    return;
  default:
    return;
  }
}

} // namespace lamella::actors
