// Who is fenced when some workers do not hear some others: every set of failed pairs of small
// pools.
#include "scheduler/membership/link_verdicts.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

constexpr seat model(uint32_t i) { return {worker_role::model, i}; }
constexpr seat shard(uint32_t i) { return {worker_role::attention, i}; }

/// Replicas and shards; those behind `parts` shards are spares.
struct pool {
  pool(uint32_t replicas, uint32_t shards, uint32_t parts) {
    uint64_t joined = 0;
    for (uint32_t i = 0; i < replicas; ++i)
      parties.push_back({model(i), false, true, replicas > 1, joined++});
    for (uint32_t i = 0; i < shards; ++i)
      parties.push_back({shard(i), false, i<parts, shards> parts, joined++});
    for (const auto& a : parties)
      for (const auto& b : parties)
        if (a.who < b.who && b.who.role == worker_role::attention) pairs.push_back({a.who, b.who});
  }
  std::vector<seat> verdict(const std::set<failed_pair>& failed) const {
    return at_fault(parties, failed);
  }
  /// All pairs of those.
  std::set<failed_pair> pairs_of(const std::set<seat>& broken) const {
    std::set<failed_pair> found;
    for (const auto& x : pairs)
      if (broken.contains(x.first) || broken.contains(x.second)) found.insert(x);
    return found;
  }
  std::vector<link_party> parties;
  std::vector<failed_pair> pairs; ///< that are asked
};

bool covers(const std::vector<seat>& fenced, const std::set<failed_pair>& failed) {
  const auto in = [&](const seat& x) { return std::ranges::find(fenced, x) != fenced.end(); };
  return std::ranges::all_of(failed, [&](const auto& x) { return in(x.first) || in(x.second); });
}

/// The fewest workers with whom all those pairs go.
size_t fewest(const pool& p, const std::set<failed_pair>& failed) {
  size_t best = p.parties.size();
  for (uint32_t set = 0; set < 1u << p.parties.size(); ++set) {
    std::vector<seat> some;
    for (size_t i = 0; i < p.parties.size(); ++i)
      if (set >> i & 1) some.push_back(p.parties[i].who);
    if (covers(some, failed)) best = std::min(best, some.size());
  }
  return best;
}

const pool pools[] = {{2, 2, 2}, {1, 3, 3}, {2, 3, 2}, {1, 2, 1}, {3, 2, 2}};

} // namespace

TEST_CASE("A1 a worker that fails with all its peers is at fault, alone, in every small pool") {
  for (const auto& p : pools)
    for (const auto& x : p.parties) {
      const auto failed = p.pairs_of({x.who});
      if (failed.size() < 2) continue;
      CAPTURE(to_string(x.who));
      CHECK(p.verdict(failed) == std::vector<seat>{x.who});
    }
}

TEST_CASE("A1 whatever fails, no failed pair is left, and few are fenced for it") {
  for (const auto& p : pools)
    for (uint32_t set = 0; set < 1u << p.pairs.size(); ++set) {
      std::set<failed_pair> failed;
      for (size_t i = 0; i < p.pairs.size(); ++i)
        if (set >> i & 1) failed.insert(p.pairs[i]);
      const auto fenced = p.verdict(failed);
      CAPTURE(set);
      CHECK(covers(fenced, failed));
      CHECK(fenced.size() <= fewest(p, failed) + 1);
      const std::set<seat> once{fenced.begin(), fenced.end()};
      CHECK(once.size() == fenced.size());
    }
}

TEST_CASE("A1 two broken workers are told from their peers") {
  const pool p{3, 4, 3};
  for (const auto& x : p.parties)
    for (const auto& y : p.parties) {
      if (!(x.who < y.who)) continue;
      auto fenced = p.verdict(p.pairs_of({x.who, y.who}));
      std::ranges::sort(fenced);
      CHECK(fenced == std::vector<seat>{x.who, y.who});
    }
}

TEST_CASE("A1 of a single pair the one goes that costs less") {
  CHECK(pool{2, 2, 2}.verdict({{model(0), shard(1)}}) == std::vector<seat>{model(0)});
  CHECK(pool{1, 3, 2}.verdict({{model(0), shard(1)}}) == std::vector<seat>{shard(1)});
  CHECK(pool{2, 3, 2}.verdict({{model(0), shard(2)}}) == std::vector<seat>{shard(2)}); // a spare
  CHECK(pool{1, 1, 1}.verdict({{model(0), shard(0)}}) == std::vector<seat>{model(0)});
  auto both = pool{1, 2, 2};
  CHECK(both.verdict({{shard(0), shard(1)}}) == std::vector<seat>{shard(1)}); // the later one
  both.parties[1].joined = 9;
  CHECK(both.verdict({{shard(0), shard(1)}}) == std::vector<seat>{shard(0)});
}

TEST_CASE("A1 a seat that nobody else can take is never at fault") {
  auto p = pool{1, 3, 3};
  p.parties[0].fixed = true;
  auto fenced = p.verdict(p.pairs_of({model(0)}));
  CHECK(fenced.size() == 3);
  CHECK(std::ranges::find(fenced, model(0)) == fenced.end());
  for (auto& x : p.parties) x.fixed = true;
  CHECK(p.verdict(p.pairs_of({model(0)})).empty());
}

TEST_CASE("A1 who is not there is nobody's fault") {
  const pool p{1, 1, 1};
  CHECK(p.verdict({{model(0), shard(7)}, {model(3), shard(0)}, {shard(0), shard(0)}}).empty());
  CHECK(p.verdict({}).empty());
}
