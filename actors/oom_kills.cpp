#include "actors/oom_kills.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

namespace lamella::actors {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The text up to the mark, which is taken off it with that.
std::string_view take_until(std::string_view& rest, char mark) {
  const auto at = rest.find(mark);
  const auto part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

} // namespace

std::string oom_file_of(std::string_view cgroups) {
  std::string found;
  while (!cgroups.empty()) { // NUMBER:CONTROLLERS:PATH
    auto line = take_until(cgroups, '\n');
    const auto number = take_until(line, ':');
    const auto controllers = take_until(line, ':');
    const std::string path{line == "/" ? "" : line};
    if (controllers == "memory") return "/sys/fs/cgroup/memory" + path + "/memory.oom_control";
    if (number == "0" && controllers.empty()) found = "/sys/fs/cgroup" + path + "/memory.events";
  }
  return found;
}

std::optional<uint64_t> oom_kills_in(std::string_view text) {
  constexpr std::string_view name = "oom_kill ";
  while (!text.empty()) {
    const auto line = take_until(text, '\n');
    if (!line.starts_with(name)) continue;
    uint64_t count = 0;
    const auto digits = line.substr(name.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error == std::errc{} && end == digits.data() + digits.size()) return count;
  }
  return std::nullopt;
}

std::optional<uint64_t> oom_kills() {
  static const auto path = oom_file_of(text_of("/proc/self/cgroup"));
  return path.empty() ? std::nullopt : oom_kills_in(text_of(path));
}

} // namespace lamella::actors
