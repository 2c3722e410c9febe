/// A set of byte strings that a model's output is held to: what structured output is made of.
///
/// A grammar is a non-deterministic automaton whose nodes may call rules, so that brackets nest,
/// and repeat rules by count, so that "at most 2,000 characters" costs one node. JSON Schemas and
/// regular expressions become grammars (json_schema.hpp, regular_expression.hpp);
/// grammar_states.hpp runs them.
#pragma once

#include "model/grammar/character_classes.hpp"

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

using byte_set = std::bitset<256>;

/// Calls `tell(b)` for each byte of a set, ascending.
template <class Tell> void each_byte(const byte_set& set, Tell&& tell) {
  const auto words = std::bit_cast<std::array<uint64_t, 4>>(set);
  for (unsigned w = 0; w < words.size(); ++w)
    for (auto left = words[w]; left != 0; left &= left - 1)
      tell(static_cast<uint8_t>(64 * w + static_cast<unsigned>(std::countr_zero(left))));
}
/// Has it one byte alone?
inline bool is_one_byte(const byte_set& set) {
  const auto [a, b, c, d] = std::bit_cast<std::array<uint64_t, 4>>(set);
  const auto all = a | b | c | d;
  return std::has_single_bit(all) && ((a != 0) + (b != 0) + (c != 0) + (d != 0)) == 1;
}

/// All bytes from `low` to `high`, both included.
byte_set bytes_between(uint8_t low, uint8_t high);

/// Bytes of characters that stand for themselves in JSON strings.
const byte_set& plain_bytes();

/// A request's grammar cannot be used: it has too many nodes, or no text that it allows can be
/// spelt.
struct grammar_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Built from the end: each function makes a node that is followed by `next`, and returns it. Loops
/// go through a choice that is made first and given its branches later.
class grammar {
public:
  using node_id = uint32_t;
  using rule_id = uint32_t;

  static constexpr uint32_t unbounded = std::numeric_limits<uint32_t>::max();
  /// A schema of a few hundred properties takes some ten thousand.
  static constexpr size_t nodes_max = 200'000;
  static constexpr size_t ways_max = 2 * nodes_max; ///< of all nodes

  enum class kind : uint8_t { bytes, choice, call, repeat, terminal_end, end };

  /// One of these bytes, and where they lead.
  struct way {
    byte_set set;
    node_id next = 0;
  };

  struct node {
    kind what = kind::end;
    byte_set set; ///< bytes: one of these, which ways() tells apart
    uint32_t first_way = 0, ways = 0;
    bool in_terminal = false;      ///< bytes: are_terminals()
    bool in_escape = false;        ///< bytes: are_escapes()
    node_id next = 0;              ///< call, repeat, terminal_end
    rule_id rule = 0;              ///< call, repeat
    uint32_t min = 0, max = 0;     ///< repeat: so often
    uint32_t rank = 0;             ///< terminal_end
    std::vector<node_id> branches; ///< choice
  };

  grammar();

  /// The end of a rule; of the first one, of the text.
  node_id end() const { return 0; }
  node_id bytes(const byte_set& set, node_id next) {
    const way one{set, next};
    return fork({&one, 1});
  }
  /// One byte that leads on its own way: the sets have none in common. A text is at one place
  /// there, where it would be at many at a choice. No ways: no text.
  node_id fork(std::span<const way> ways);
  node_id text(std::string_view text, node_id next);
  /// One of the texts. Those that begin or end alike share nodes.
  node_id texts(std::vector<std::string> texts, node_id next);
  node_id choice(std::vector<node_id> branches = {});
  /// `branches` more for a choice.
  void branch(node_id choice, std::vector<node_id> branches);
  /// Nothing, or what begins at `optional`, which goes on at `next` itself.
  node_id maybe(node_id optional, node_id next) { return choice({optional, next}); }

  /// A rule without a beginning yet; rule 0 is the whole text and is there from the start.
  rule_id rule();
  void begin(rule_id rule, node_id first) { rules_[rule] = first; }
  node_id call(rule_id rule, node_id next);
  /// The rule `min` to `max` times (or unbounded). What it allows must not be empty.
  node_id repeat(rule_id rule, uint32_t min, uint32_t max, node_id next);

  /// What a lexer reads as one terminal ends here; the nodes of its bytes are_terminals(). Of the
  /// terminals that may be at some place of a text none ends there while any of them can go on, and
  /// of those that end with the same character the one of the lowest rank is meant. A terminal has
  /// whole characters, and at least one.
  node_id terminal_end(uint32_t rank, node_id next);
  /// The nodes of bytes that were made since there were `nodes` are within terminals.
  void are_terminals(size_t nodes);
  bool has_terminals() const { return has_terminals_; }

  /// The nodes that were made since there were `nodes` are within escapes of JSON strings: the
  /// plain bytes that they take are no characters of the string.
  void are_escapes(size_t nodes);

  /// The nodes that were made since there were `nodes` tell no more characters apart than these,
  /// but for those within escapes, and are left by plain_bytes() to each other alone. Where one of
  /// `behind`, by which they are left, takes a plain byte, nothing is noted. Callers note parts in
  /// the order of their nodes.
  void tells_apart(size_t nodes, character_classes classes, std::span<const node_id> behind);
  /// Classes that the part of this node tells apart; null where nothing is known, as within
  /// escapes, which tell apart letters and digits of all kinds.
  const character_classes* classes_at(node_id x) const;

  const std::vector<node>& nodes() const { return nodes_; }
  /// Of a node of bytes; none of others.
  std::span<const way> ways(const node& x) const { return {ways_.data() + x.first_way, x.ways}; }
  /// Of all nodes, in their order.
  std::span<const way> all_ways() const { return ways_; }
  /// The way that a byte of a node's set takes.
  const way& way_of(const node& x, uint8_t byte) const {
    auto i = x.first_way;
    while (!ways_[i].set[byte]) ++i;
    return ways_[i];
  }
  node_id first_of(rule_id rule) const { return rules_[rule]; }

  /// What making this grammar has cost so far, in steps of whoever makes it; all schemas of a
  /// request share one bound.
  uint64_t work() const { return work_; }
  void add_work(uint64_t steps) { work_ += steps; }

private:
  [[noreturn]] static void refuse_more();
  node_id add(node x);

  std::vector<node> nodes_;
  std::vector<way> ways_; ///< of all nodes
  std::vector<node_id> rules_;
  struct part {
    node_id first, behind;
    character_classes classes;
  };
  std::vector<part> parts_; ///< ascending
  bool has_terminals_ = false;
  uint64_t work_ = 0;
};

/// By node: is there a text of these bytes from here to the end of its rule? Linear in the nodes
/// and their branches.
std::vector<bool> productive_nodes(const grammar& g, const byte_set& available);

} // namespace lamella::model
