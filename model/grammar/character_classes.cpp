#include "model/grammar/character_classes.hpp"

#include <algorithm>
#include <map>

namespace lamella::model {

character_classes character_classes::of_sets(std::span<const set> sets) {
  std::vector<char32_t> starts{0};
  for (const auto& one : sets)
    for (const auto& [low, high] : one) {
      starts.push_back(low);
      starts.push_back(high + 1);
      if (starts.size() > 2 * ranges_max) return {};
    }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<std::vector<bool>> in(starts.size(), std::vector<bool>(sets.size()));
  for (size_t s = 0; s < sets.size(); ++s)
    for (const auto& [low, high] : sets[s]) {
      const auto from = std::lower_bound(starts.begin(), starts.end(), low) - starts.begin();
      for (auto i = static_cast<size_t>(from); i < starts.size() && starts[i] <= high; ++i)
        in[i][s] = true;
    }
  std::map<std::vector<bool>, uint32_t> classes;
  character_classes made;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto known = classes.try_emplace(in[i], static_cast<uint32_t>(classes.size())).first;
    if (classes.size() > classes_max) return {};
    if (made.ranges.empty() || made.ranges.back().of != known->second)
      made.ranges.push_back({starts[i], known->second});
  }
  return made;
}

uint32_t character_classes::count() const {
  uint32_t highest = 0;
  for (const auto& r : ranges) highest = std::max(highest, r.of);
  return highest + 1;
}

std::vector<char32_t> character_classes::plain_ones() const {
  constexpr std::pair<char32_t, char32_t> plain[] = {
      {' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, 0x10FFFF}};
  std::vector<bool> has(count());
  std::vector<char32_t> ones;
  for (const auto& [low, high] : plain) {
    auto at = std::upper_bound(ranges.begin(), ranges.end(), low,
                               [](char32_t x, const range& r) { return x < r.first; });
    for (--at; at != ranges.end() && at->first <= high; ++at) {
      if (has[at->of]) continue;
      has[at->of] = true;
      ones.push_back(std::max(low, at->first));
    }
  }
  return ones;
}

uint32_t character_classes::of(char32_t c) const {
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), c,
                                       [](char32_t x, const range& r) { return x < r.first; });
  return (behind - 1)->of;
}

} // namespace lamella::model
