#include "model/grammar/runnable_grammar.hpp"

#include "model/grammar/hash_index.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

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
    case kind::terminal_end:
      return behind;
    }
    return 0;
  });
}

/// Finds nodes at which a text may be at too many places.
class ways {
public:
  explicit ways(const runnable_grammar& g) : grammar_{g}, seen_in_(g.rules.nodes().size(), 0) {}

  /// Returns the nodes visited. Ends without a result after so many that no request waits for it:
  /// what runs the grammar has bounds of its own.
  uint64_t check() {
    // Sums count twice where ways meet, so they only tell where to look.
    const auto first = sums([](const auto&) { return 1; });
    const auto second = sums([&](const grammar::node& x) {
      uint32_t most = 0; // a byte takes one way
      for (const auto& w : grammar_.rules.ways(x)) most = std::max(most, first[w.next]);
      return most;
    });
    size_t looks = 64;
    for (node_id i = 0; i < second.size() && looks > 0 && visits_ < visits_max; ++i)
      if (std::max(first[i], second[i]) > runnable_grammar::places_max) {
        look(i);
        --looks;
      }
    return visits_;
  }

private:
  static constexpr uint64_t visits_max = 2'000'000;

  template <class Leaf> std::vector<uint32_t> sums(Leaf leaf) const {
    return of_each_node(grammar_.rules, [&](const grammar::node& x, const auto& known) {
      uint64_t sum = x.what == kind::bytes ? leaf(x) : 0;
      each_behind(x, [&](node_id b) { sum += known[b]; });
      return sum;
    });
  }

  /// Tells what is reached from a node without a byte, in one step.
  template <class Tell> void each_behind(const grammar::node& x, Tell&& tell) const {
    if (x.what == kind::choice)
      for (const auto b : x.branches) tell(b);
    if (x.what == kind::terminal_end) tell(x.next);
    if (x.what != kind::call && x.what != kind::repeat) return;
    const auto first = grammar_.rules.first_of(x.rule);
    tell(first);
    if (grammar_.nullable[first] || (x.what == kind::repeat && x.min == 0)) tell(x.next);
  }

  /// The byte nodes that are reached from a node without a byte: not all once visits_max is spent.
  std::vector<node_id> reached(node_id from) {
    ++walk_;
    std::vector<node_id> to_visit{from}, found;
    while (!to_visit.empty() && visits_ < visits_max) {
      const auto at = to_visit.back();
      to_visit.pop_back();
      ++visits_;
      if (!grammar_.productive[at] || seen_in_[at] == walk_) continue;
      seen_in_[at] = walk_;
      const auto& x = grammar_.rules.nodes()[at];
      if (x.what == kind::bytes) found.push_back(at);
      each_behind(x, [&](node_id b) { to_visit.push_back(b); });
    }
    return found;
  }
  size_t count_reached(node_id from) {
    const auto [known, is_new] = counts_.try_emplace(from, 0);
    if (is_new) known->second = reached(from).size();
    return known->second;
  }

  void look(node_id at) {
    const auto here = reached(at);
    std::array<size_t, 256> by_byte{};
    auto most = here.size();
    for (const auto i : here) {
      const auto& x = grammar_.rules.nodes()[i];
      for (const auto& w : grammar_.rules.ways(x)) {
        const auto there = count_reached(w.next);
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
  std::vector<uint32_t> seen_in_; ///< by node: the last walk that met it
  uint32_t walk_ = 0;
  uint64_t visits_ = 0;
  std::unordered_map<node_id, size_t> counts_;
};

} // namespace

byte_classes::byte_classes(const grammar& g) {
  const auto ways = g.all_ways();
  std::unordered_map<byte_set, uint32_t> numbers;
  std::vector<byte_set> sets; // of several bytes, by number
  std::vector<uint32_t> number_of(ways.size());
  byte_set alone;
  for (size_t i = 0; i < ways.size(); ++i) {
    const auto& set = ways[i].set;
    if (is_one_byte(set)) {
      alone |= set;
    } else if (i > 0 && set == ways[i - 1].set) {
      number_of[i] = number_of[i - 1];
    } else {
      const auto made = static_cast<uint32_t>(sets.size());
      const auto [known, is_new] = numbers.try_emplace(set, made);
      if (is_new) sets.push_back(set);
      number_of[i] = known->second;
    }
  }
  std::array<uint64_t, 256> hashes{};
  for (size_t n = 0; n < sets.size(); ++n)
    each_byte(sets[n], [&](uint8_t b) { hashes[b] = mix(hashes[b], n + 1); });
  std::unordered_map<uint64_t, uint8_t> known;
  for (unsigned i = 0; i < 256; ++i) {
    const auto b = static_cast<uint8_t>('a' + i);
    const auto made = static_cast<uint8_t>(first.size());
    if (alone[b])
      of[b] = made;
    else
      of[b] = known.try_emplace(hashes[b], made).first->second;
    if (of[b] != made) continue;
    first.push_back(b);
    firsts.set(b);
  }
  std::vector<uint8_t> byte(sets.size()); // the first of each set
  for (size_t n = 0; n < sets.size(); ++n)
    if (const auto c = std::find_if(first.begin(), first.end(), [&](auto b) { return sets[n][b]; });
        c != first.end())
      byte[n] = *c;
  for (size_t i = 0; i < ways.size(); ++i)
    first_of.push_back(is_one_byte(ways[i].set) ? static_cast<uint8_t>(ways[i].set._Find_first())
                                                : byte[number_of[i]]);
}

runnable_grammar::runnable_grammar(grammar g, const byte_set& available)
    : rules{std::move(g)}, classes{rules}, productive{productive_nodes(rules, available)},
      nullable{productive_nodes(rules, {})}, bytes{least_bytes(rules)} {
  if (!productive[rules.first_of(0)])
    throw grammar_error("it allows no text at all, or none that the vocabulary can spell");
  visits = ways{*this}.check();
}

} // namespace lamella::model
