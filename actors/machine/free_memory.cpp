#include "actors/machine/free_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace lamella::actors {

namespace {

constexpr auto no_limit = std::numeric_limits<uint64_t>::max();

/// The number behind a word at the beginning of a line.
std::optional<uint64_t> number_after(std::string_view text, std::string_view word) {
  std::istringstream lines{std::string{text}};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in{line};
    std::string first;
    uint64_t number = 0;
    if (in >> first >> number && first == word) return number;
  }
  return std::nullopt;
}

/// The only number of a file; nothing where there is none, as in "max".
std::optional<uint64_t> number_in(const std::string& file) {
  std::ifstream in{file};
  uint64_t number = 0;
  return in >> number ? std::optional{number} : std::nullopt;
}

} // namespace

uint64_t available_in(std::string_view meminfo) {
  const auto kib = number_after(meminfo, "MemAvailable:");
  return kib ? *kib * 1024 : no_limit;
}

uint64_t left_by(const control_groups& groups) {
  const bool first = groups.version == 1;
  auto least = no_limit;
  for (const auto& folder : groups.folders) {
    const auto limit = number_in(folder + (first ? "/memory.limit_in_bytes" : "/memory.max"));
    const auto used = number_in(folder + (first ? "/memory.usage_in_bytes" : "/memory.current"));
    if (!limit || !used) continue;
    const auto files = number_after(kernel_file(folder + "/memory.stat"),
                                    first ? "total_inactive_file" : "inactive_file")
                           .value_or(0);
    const auto kept = *used - std::min(*used, files);
    least = std::min(least, *limit - std::min(*limit, kept));
  }
  return least;
}

uint64_t free_memory() {
  return std::min(available_in(kernel_file("/proc/meminfo")), left_by(own_groups("memory")));
}

} // namespace lamella::actors
