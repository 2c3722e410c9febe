#include "model/grammar/runnable_grammar.hpp"

#include "model/grammar/hash_index.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace lamella::model {

namespace {

using kind = grammar::kind;
using node_id = grammar::node_id;

/// By node, of those behind it, which are known when it is asked for. Those behind a loop, and
/// rules that were begun late, are known in the second round; until then they are 0.
template <class From> std::vector<uint32_t> of_each_node(const grammar& g, From from) {
  constexpr uint64_t enough = 1 << 16;
  std::vector<uint32_t> known(g.nodes().size(), 0);
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < known.size(); ++i)
      known[i] = static_cast<uint32_t>(std::min(enough, from(g.nodes()[i], known)));
  return known;
}

/// Never more than there are.
std::vector<uint32_t> least_bytes(const grammar& g) {
  return of_each_node(g, [&](const grammar::node& x, const auto& known) -> uint64_t {
    const auto behind = uint64_t{known[x.next]};
    switch (x.what) {
    case kind::end:
      return 0;
    case kind::bytes: {
      auto least = ~uint64_t{0};
      for (const auto& w : g.ways(x)) least = std::min<uint64_t>(least, known[w.next]);
      return 1 + least;
    }
    case kind::choice: {
      auto least = ~uint64_t{0};
      for (const auto b : x.branches) least = std::min<uint64_t>(least, known[b]);
      return least;
    }
    case kind::call:
      return known[g.first_of(x.rule)] + behind;
    case kind::repeat:
      return uint64_t{x.min} * known[g.first_of(x.rule)] + behind;
    }
    return 0;
  });
}

/// Finds nodes at which a text may be at too many places.
class ways {
public:
  explicit ways(const runnable_grammar& g) : grammar_{g} {}

  void check() {
    // Sums count twice where ways meet, so they only tell where to look.
    const auto first = sums([](const auto&) { return 1; });
    const auto second = sums([&](const grammar::node& x) {
      uint32_t most = 0; // a byte takes one way
      for (const auto& w : grammar_.rules.ways(x)) most = std::max(most, first[w.next]);
      return most;
    });
    size_t looks = 64;
    for (node_id i = 0; i < second.size() && looks > 0; ++i)
      if (std::max(first[i], second[i]) > runnable_grammar::places_max) {
        look(i);
        --looks;
      }
  }

private:
  template <class Leaf> std::vector<uint32_t> sums(Leaf leaf) const {
    return of_each_node(grammar_.rules, [&](const grammar::node& x, const auto& known) {
      uint64_t sum = x.what == kind::bytes ? leaf(x) : 0;
      for (const auto b : behind(x)) sum += known[b];
      return sum;
    });
  }

  /// What is reached from a node without a byte, in one step.
  std::vector<node_id> behind(const grammar::node& x) const {
    if (x.what == kind::choice) return x.branches;
    if (x.what != kind::call && x.what != kind::repeat) return {};
    const auto first = grammar_.rules.first_of(x.rule);
    std::vector<node_id> result{first};
    if (grammar_.nullable[first] || (x.what == kind::repeat && x.min == 0))
      result.push_back(x.next);
    return result;
  }

  /// The byte nodes that are reached from a node without a byte.
  std::vector<node_id> reached(node_id from) const {
    std::vector<node_id> to_visit{from}, found;
    std::unordered_set<node_id> seen;
    while (!to_visit.empty()) {
      const auto at = to_visit.back();
      to_visit.pop_back();
      if (!grammar_.productive[at] || !seen.insert(at).second) continue;
      const auto& x = grammar_.rules.nodes()[at];
      if (x.what == kind::bytes) found.push_back(at);
      for (const auto b : behind(x)) to_visit.push_back(b);
    }
    return found;
  }

  void look(node_id at) const {
    const auto here = reached(at);
    std::array<size_t, 256> by_byte{};
    auto most = here.size();
    for (const auto i : here) {
      const auto& x = grammar_.rules.nodes()[i];
      for (const auto& w : grammar_.rules.ways(x)) {
        const auto there = reached(w.next).size();
        for (size_t b = 0; b < by_byte.size(); ++b)
          if (w.set[b]) most = std::max(most, by_byte[b] += there);
      }
      if (most > runnable_grammar::places_max)
        throw grammar_error("it is too ambiguous: more than "
                            + std::to_string(runnable_grammar::places_max)
                            + " positions in the format are possible at once; use fewer"
                              " alternatives or optional members");
    }
  }

  const runnable_grammar& grammar_;
};

} // namespace

byte_classes::byte_classes(const grammar& g) {
  const auto ways = g.all_ways();
  std::unordered_map<byte_set, uint8_t> sets; // and a byte of each
  byte_set alone;
  for (const auto& w : ways) {
    if (w.set.count() == 1)
      alone |= w.set;
    else
      sets.try_emplace(w.set);
  }
  std::array<uint64_t, 256> hashes{};
  uint64_t number = 0;
  for (const auto& [set, byte] : sets) {
    ++number;
    for (size_t b = 0; b < hashes.size(); ++b)
      if (set[b]) hashes[b] = mix(hashes[b], number);
  }
  std::unordered_map<uint64_t, uint8_t> known;
  for (unsigned i = 0; i < 256; ++i) {
    const auto b = static_cast<uint8_t>('a' + i);
    const auto made = static_cast<uint8_t>(first.size());
    if (alone[b])
      of[b] = made;
    else
      of[b] = known.try_emplace(hashes[b], made).first->second;
    if (of[b] == made) first.push_back(b);
  }
  for (auto& [set, byte] : sets)
    if (const auto c = std::find_if(first.begin(), first.end(), [&](auto b) { return set[b]; });
        c != first.end())
      byte = *c;
  for (const auto& w : ways) {
    const auto set = sets.find(w.set);
    first_of.push_back(set != sets.end() ? set->second : static_cast<uint8_t>(w.set._Find_first()));
  }
}

runnable_grammar::runnable_grammar(grammar g, const byte_set& available)
    : rules{std::move(g)}, classes{rules}, productive{productive_nodes(rules, available)},
      nullable{productive_nodes(rules, {})}, bytes{least_bytes(rules)} {
  if (!productive[rules.first_of(0)])
    throw grammar_error("it allows no text at all, or none that the vocabulary can spell");
  ways{*this}.check();
}

} // namespace lamella::model
