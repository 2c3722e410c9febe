#include "model/grammar/code_points.hpp"

#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace lamella;
using model::code_points;

namespace {

constexpr char32_t first = 0xD7F0, count = 0x820; // with the surrogates within

std::vector<bool> members_of(const code_points& set) {
  std::vector<bool> has(count, false);
  for (const auto& [low, high] : set.ranges())
    for (auto c = low; c <= high; ++c) has[c - first] = true;
  return has;
}

/// Ranges of which some overlap, lie side by side, or have surrogates.
std::vector<code_points::range> some_ranges(tests::splitmix& random) {
  std::vector<code_points::range> ranges(random.below(12));
  for (auto& [low, high] : ranges) {
    low =
        first
        + static_cast<char32_t>(random.below(2) == 0 ? random.below(24) : 0x808 + random.below(24));
    high = std::min<char32_t>(low + static_cast<char32_t>(random.below(4)), first + count - 1);
    if (random.below(20) == 0) high = std::max<char32_t>(high, 0xE000);
  }
  return ranges;
}

std::vector<bool> members_of(const std::vector<code_points::range>& ranges) {
  std::vector<bool> has(count, false);
  for (const auto& [low, high] : ranges)
    for (auto c = low; c <= high; ++c) has[c - first] = c < 0xD800 || c > 0xDFFF;
  return has;
}

} // namespace

TEST_CASE("sets of characters are those of their ranges, in whichever order they come") {
  tests::splitmix random{7};
  for (int round = 0; round < 500; ++round) {
    const auto ranges = some_ranges(random);
    const auto set = code_points::of(ranges);
    const auto has = members_of(ranges);
    CHECK(members_of(set) == has);
    code_points added;
    for (const auto& [low, high] : ranges) added.add(low, high);
    CHECK(added.ranges() == set.ranges());
    for (size_t i = 1; i < set.ranges().size(); ++i)
      CHECK(set.ranges()[i - 1].second + 1 < set.ranges()[i].first);
    for (char32_t c = 0; c < count; c += 1 + c % 3) CHECK(set.contains(first + c) == has[c]);
  }
}

TEST_CASE("a set of characters without another has what only the first one has") {
  tests::splitmix random{8};
  for (int round = 0; round < 500; ++round) {
    const auto ranges = some_ranges(random), holes = some_ranges(random);
    const auto rest = code_points::of(ranges).without(code_points::of(holes));
    auto expected = members_of(ranges);
    const auto taken = members_of(holes);
    for (size_t c = 0; c < count; ++c) expected[c] = expected[c] && !taken[c];
    CHECK(members_of(rest) == expected);
  }
  CHECK(code_points::all().without(code_points::all()).empty());
}
