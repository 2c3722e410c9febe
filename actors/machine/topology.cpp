#include "actors/machine/topology.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lamella::actors {

namespace {

constexpr unsigned number_max = 65'535;

/// With fewer cores their second threads compute, too: what little they add counts there, and that
/// they lose was never measured.
constexpr size_t cores_for_one_thread = 4;

/// Modes of linux/mempolicy.h, which is not among the headers of all systems.
constexpr int policy_default = 0, policy_interleave = 3;

/// Of this thread; the default where the kernel has none.
int memory_policy() {
  int mode = policy_default;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : policy_default;
}

std::string line_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<unsigned> number_in(std::string_view text) {
  unsigned n = 0;
  const auto* last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, n);
  if (failure != std::errc{} || end != last || n > number_max) return std::nullopt;
  return n;
}

/// The node of each processor; none for those of which nothing is said.
std::map<unsigned, unsigned> nodes_below(const std::filesystem::path& sys) {
  std::map<unsigned, unsigned> result;
  std::error_code failure;
  const std::string_view prefix = "node";
  for (const auto& entry :
       std::filesystem::directory_iterator{sys / "devices/system/node", failure}) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto node = number_in(std::string_view{name}.substr(prefix.size()));
    if (!node) continue;
    if (const auto list = processors_of(line_of(entry.path() / "cpulist")))
      for (const auto x : *list) result[x] = *node;
  }
  return result;
}

/// The slow cores of processors with two kinds, as Intel's driver lists them.
std::set<unsigned> slow_below(const std::filesystem::path& sys) {
  return processors_of(line_of(sys / "devices/cpu_atom/cpus")).value_or(std::set<unsigned>{});
}

} // namespace

std::optional<std::set<unsigned>> processors_of(std::string_view list) {
  std::set<unsigned> result;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto part = list.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (auto n = *first; n <= *last; ++n) result.insert(n);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
    if (list.empty()) return std::nullopt;
  }
  if (result.empty()) return std::nullopt;
  return result;
}

std::string list_of(const std::set<unsigned>& processors) {
  std::string text;
  for (auto x = processors.begin(); x != processors.end();) {
    const auto first = *x;
    auto last = first;
    for (++x; x != processors.end() && *x == last + 1; ++x) last = *x;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

std::vector<processor> topology_of(const std::set<unsigned>& allowed,
                                   const std::filesystem::path& sys) {
  const auto nodes = nodes_below(sys);
  const auto slow = slow_below(sys);
  std::vector<processor> result;
  for (const auto number : allowed) {
    const auto folder = sys / "devices/system/cpu" / ("cpu" + std::to_string(number));
    processor x{number, number, 0, slow.contains(number) ? 0u : 1u};
    if (const auto siblings = processors_of(line_of(folder / "topology/thread_siblings_list")))
      x.core = *siblings->begin();
    if (const auto found = nodes.find(number); found != nodes.end()) x.node = found->second;
    if (const auto capacity = number_in(line_of(folder / "cpu_capacity"))) x.capacity = *capacity;
    result.push_back(x);
  }
  return result;
}

std::set<unsigned> computing(const std::vector<processor>& all) {
  unsigned fastest = 0;
  for (const auto& x : all) fastest = std::max(fastest, x.capacity);
  std::set<unsigned> cores, one_of_each, fast;
  for (const auto& x : all) {
    if (x.capacity != fastest) continue;
    fast.insert(x.number);
    if (cores.insert(x.core).second) one_of_each.insert(x.number);
  }
  return cores.size() < cores_for_one_thread ? fast : one_of_each;
}

std::vector<std::set<unsigned>> by_node(const std::vector<processor>& all) {
  std::map<unsigned, std::set<unsigned>> nodes;
  for (const auto& x : all) nodes[x.node].insert(x.number);
  std::vector<std::set<unsigned>> result;
  result.reserve(nodes.size());
  for (auto& [node, processors] : nodes) result.push_back(std::move(processors));
  return result;
}

std::set<unsigned> share_of(const std::vector<processor>& all, uint32_t place, uint32_t processes) {
  const auto nodes = by_node(all);
  if (nodes.size() > 1 && processes >= nodes.size()) return nodes[place % nodes.size()];
  std::set<unsigned> result;
  for (const auto& x : all) result.insert(x.number);
  return result;
}

std::set<unsigned> allowed_processors() {
  std::set<unsigned> result;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (unsigned i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) result.insert(i);
  if (result.empty()) result.insert(0);
  return result;
}

std::vector<processor> own_topology() { return topology_of(allowed_processors(), "/sys"); }

void bind_to(const std::set<unsigned>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto x : processors)
    if (x < CPU_SETSIZE) CPU_SET(x, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::system_error{errno, std::generic_category(), "processors " + list_of(processors)};
  // That of a parent which spreads its own.
  if (memory_policy() == policy_interleave) syscall(SYS_set_mempolicy, policy_default, nullptr, 0);
}

size_t spread_memory() {
  std::set<unsigned> nodes;
  for (const auto& x : own_topology()) nodes.insert(x.node);
  constexpr size_t bits = 8 * sizeof(unsigned long), words = 1024 / bits;
  if (nodes.size() < 2 || *nodes.rbegin() >= words * bits) return 1;
  if (memory_policy() != policy_default) return 1;
  unsigned long mask[words] = {};
  for (const auto node : nodes) mask[node / bits] |= 1ul << node % bits;
  const auto failed = syscall(SYS_set_mempolicy, policy_interleave, mask, words * bits) != 0;
  return failed ? 1 : nodes.size();
}

} // namespace lamella::actors
