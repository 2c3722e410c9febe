#include "actors/machine/oom_kills.hpp"

#include "actors/machine/control_groups.hpp"

#include <charconv>
#include <sstream>

namespace lamella::actors {

std::string oom_file_of(std::string_view cgroups) {
  const auto own = groups_of(cgroups, "memory");
  if (own.version == 0) return {};
  return own.folders.front() + (own.version == 1 ? "/memory.oom_control" : "/memory.events");
}

std::optional<uint64_t> oom_kills_in(std::string_view text) {
  constexpr std::string_view name = "oom_kill ";
  std::istringstream lines{std::string{text}};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    uint64_t count = 0;
    const auto digits = std::string_view{line}.substr(name.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error == std::errc{} && end == digits.data() + digits.size()) return count;
  }
  return std::nullopt;
}

std::optional<uint64_t> oom_kills() {
  static const auto path = oom_file_of(kernel_file("/proc/self/cgroup"));
  return path.empty() ? std::nullopt : oom_kills_in(kernel_file(path));
}

} // namespace lamella::actors
