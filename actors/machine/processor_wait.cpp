#include "actors/machine/processor_wait.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace lamella::actors {

/// schedstat: nanoseconds on a processor, nanoseconds ready beside it, turns.
std::optional<std::chrono::nanoseconds> waited_for_processors(uint32_t pid) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::optional<std::chrono::nanoseconds> all;
  fs::directory_iterator thread{"/proc/" + std::to_string(pid) + "/task", failed};
  for (; !failed && thread != fs::directory_iterator{}; thread.increment(failed)) {
    std::ifstream file{thread->path() / "schedstat"};
    int64_t ran = 0, waited = 0;
    if (file >> ran >> waited)
      all = all.value_or(std::chrono::nanoseconds{0}) + std::chrono::nanoseconds{waited};
  }
  return all;
}

} // namespace lamella::actors
