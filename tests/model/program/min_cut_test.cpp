#include "model/program/min_cut.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella;
using model::cut_edge;

namespace {

uint64_t weight_of(const std::vector<cut_edge>& edges, const std::vector<bool>& source_side) {
  uint64_t total = 0;
  for (const auto& e : edges)
    if (source_side[e.from] && !source_side[e.to]) total += e.weight;
  return total;
}

/// Least weight over all parts, and the vertices that are in every part of that weight: the
/// smallest one.
std::pair<uint64_t, uint32_t> try_all(uint32_t vertices, const std::vector<cut_edge>& edges,
                                      uint32_t source, uint32_t sink) {
  uint64_t least = ~uint64_t{0};
  uint32_t common = 0;
  for (uint32_t set = 0; set < 1u << vertices; ++set) {
    if (!(set >> source & 1) || (set >> sink & 1)) continue;
    std::vector<bool> side(vertices);
    for (uint32_t v = 0; v < vertices; ++v) side[v] = set >> v & 1;
    const auto weight = weight_of(edges, side);
    if (weight < least) common = ~0u;
    if (weight <= least) common &= set;
    least = std::min(least, weight);
  }
  return {least, common};
}

} // namespace

TEST_CASE("L-M13 the minimum cut of random graphs weighs what trying all parts finds") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    tests::splitmix random{seed};
    const auto vertices = static_cast<uint32_t>(2 + random.below(8));
    std::vector<cut_edge> edges(random.below(25));
    for (auto& e : edges) {
      e.from = static_cast<uint32_t>(random.below(vertices));
      e.to = static_cast<uint32_t>(random.below(vertices));
      // Few weights, so that there are ties; some edges that must not be cut.
      e.weight = random.below(8) == 0 ? model::uncuttable : random.below(5);
    }
    const uint32_t source = 0, sink = vertices - 1;
    const auto [least, smallest] = try_all(vertices, edges, source, sink);
    const auto found = model::min_cut(vertices, edges, source, sink);
    CHECK(found.weight == least);
    REQUIRE(found.source_side.size() == vertices);
    CHECK(weight_of(edges, found.source_side) == least);
    for (uint32_t v = 0; v < vertices; ++v) CHECK(found.source_side[v] == (smallest >> v & 1));
  }
}

TEST_CASE("two vertices without a path are parted at no cost") {
  const auto found = model::min_cut(2, {}, 0, 1);
  CHECK(found.weight == 0);
  CHECK(found.source_side == std::vector<bool>{true, false});
}

TEST_CASE("a path of uncuttable edges is told by its weight") {
  const std::vector<cut_edge> edges{{0, 1, model::uncuttable}, {1, 2, model::uncuttable}};
  CHECK(model::min_cut(3, edges, 0, 2).weight >= model::uncuttable);
}

TEST_CASE("edges side by side weigh their sum, and a loop weighs nothing") {
  const std::vector<cut_edge> edges{{0, 1, 7}, {0, 1, 17}, {1, 1, 54}, {1, 0, 1000}};
  CHECK(model::min_cut(2, edges, 0, 1).weight == 24);
}
