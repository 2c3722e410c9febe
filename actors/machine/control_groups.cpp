#include "actors/machine/control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace lamella::actors {
namespace {

/// The text up to the mark, which is taken off it with that.
std::string_view take_until(std::string_view& rest, char mark) {
  const auto at = rest.find(mark);
  const auto part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

bool is_in_list(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (take_until(list, ',') == word) return true;
  return false;
}

/// A number in a file; the largest one when there is no file or it says "max".
uint64_t limit_in(const std::string& file) {
  std::ifstream in{file};
  uint64_t value = 0;
  return in >> value && value > 0 ? value : std::numeric_limits<uint64_t>::max();
}

} // namespace

control_groups groups_of(std::string_view text, std::string_view controller,
                         const std::string& root) {
  std::string path, top;
  control_groups result;
  while (!text.empty()) { // NUMBER:CONTROLLERS:PATH
    auto line = take_until(text, '\n');
    const auto number = take_until(line, ':');
    const auto controllers = take_until(line, ':');
    if (is_in_list(controllers, controller)) {
      result.version = 1;
      path = line;
      top = root + "/" + std::string{controller};
      break;
    }
    if (number == "0" && controllers.empty()) {
      result.version = 2;
      path = line;
      top = root;
    }
  }
  if (result.version == 0) return result;
  while (!path.empty() && path != "/") {
    result.folders.push_back(top + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  result.folders.push_back(top);
  return result;
}

std::string kernel_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

control_groups own_groups(std::string_view controller) {
  return groups_of(kernel_file("/proc/self/cgroup"), controller);
}

uint64_t memory_bound(const control_groups& groups) {
  auto least = std::numeric_limits<uint64_t>::max();
  for (const auto& folder : groups.folders)
    least = std::min(
        least, limit_in(folder + (groups.version == 1 ? "/memory.limit_in_bytes" : "/memory.max")));
  return least;
}

double processor_bound(const control_groups& groups) {
  double least = 1e9;
  for (const auto& folder : groups.folders) {
    std::ifstream both{folder + "/cpu.max"};
    std::ifstream of_time{folder + "/cpu.cfs_quota_us"}, per{folder + "/cpu.cfs_period_us"};
    double quota = 0, period = 0;
    const bool bounds = groups.version == 1 ? of_time >> quota && per >> period
                                            : static_cast<bool>(both >> quota >> period);
    if (bounds && quota > 0 && period > 0) least = std::min(least, quota / period);
  }
  return least;
}

} // namespace lamella::actors
