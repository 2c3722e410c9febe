#include "scheduler/membership/link_verdicts.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace lamella::scheduler {

namespace {

std::map<seat, size_t> degrees(const std::set<failed_pair>& pairs) {
  std::map<seat, size_t> count;
  for (const auto& [a, b] : pairs) ++count[a], ++count[b];
  return count;
}

/// Each pair once, and only those that somebody may be fenced for.
std::set<failed_pair> that_matter(std::span<const link_party> parties,
                                  const std::set<failed_pair>& pairs) {
  const auto find = [&](const seat& x) {
    return std::ranges::find_if(parties, [&](const auto& p) { return p.who == x; });
  };
  std::set<failed_pair> result;
  for (const auto& [a, b] : pairs) {
    const auto first = find(a), second = find(b);
    if (a == b || first == parties.end() || second == parties.end()) continue;
    if (first->fixed && second->fixed) continue;
    result.insert(std::minmax(a, b));
  }
  return result;
}

} // namespace

std::vector<seat> at_fault(std::span<const link_party> parties,
                           const std::set<failed_pair>& pairs) {
  auto left = that_matter(parties, pairs);
  const auto all = degrees(left);
  std::vector<seat> result;
  while (!left.empty()) {
    const auto now = degrees(left);
    const auto fault = [&](const link_party& x) {
      const auto found = now.find(x.who);
      if (x.fixed || found == now.end())
        return std::tuple<size_t, size_t, bool, bool, bool, uint64_t>{};
      return std::tuple{found->second,
                        all.at(x.who),
                        !x.has_part,
                        x.replaceable,
                        x.who.role != worker_role::attention,
                        x.joined + 1};
    };
    const auto worst =
        std::ranges::max_element(parties, {}, fault); // fails with somebody: a pair is left
    result.push_back(worst->who);
    std::erase_if(left,
                  [&](const auto& x) { return x.first == worst->who || x.second == worst->who; });
  }
  return result;
}

} // namespace lamella::scheduler
