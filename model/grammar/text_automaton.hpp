/// Sets of texts as deterministic automata over characters: what can be intersected and
/// complemented.
#pragma once

#include "model/grammar/code_points.hpp"
#include "model/grammar/regular_expression.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::model {

/// An automaton would have more states, or edges, than are made.
struct automaton_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Each text has a mark, a set of bits: 0 for texts that are not in the set. Work and memory are
/// bounded by states_max and edges_max.
class text_automaton {
public:
  using mark = uint64_t;
  static constexpr size_t states_max = 4'000;
  static constexpr size_t edges_max = states_max * 64; ///< of each state and class of characters
  static constexpr size_t marks_max = 64;              ///< automata of a product

  /// The texts that the expression matches. Throws automaton_error, regular_expression_error.
  static text_automaton of(const regular_expression& expression, regular_expression::match what);
  /// Of the texts that the expression matches as a whole those that it finds at the beginning of a
  /// longer text, where that goes on with what it does not match: of alternatives the first one
  /// that matches counts, and of a lazy repeat the fewest times. Throws as of().
  static text_automaton of_first_matches(const regular_expression& expression);
  static text_automaton of_texts(const std::vector<std::string>& texts);
  /// Texts of `min` to `max` characters (or grammar::unbounded).
  static text_automaton of_length(uint32_t min, uint32_t max);

  /// All automata at once: bit i of a mark tells whether the text is one of the i-th.
  static text_automaton product(std::span<const text_automaton> all);
  /// Texts that are in all of them.
  static text_automaton intersection(std::span<const text_automaton> all);
  text_automaton complement() const;
  /// Other marks for the same texts; what gets 0 is in the set no more.
  text_automaton marked(const std::function<mark(mark)>& as) const&;
  text_automaton marked(const std::function<mark(mark)>& as) &&;

  mark mark_of(std::string_view text) const;
  bool matches(std::string_view text) const { return mark_of(text) != 0; }
  bool empty() const;
  /// The marks there are, 0 among them where not all texts are in the set.
  std::vector<mark> marks() const;
  /// The fewest and the most characters of its texts (grammar::unbounded: no limit); nothing when
  /// there are none.
  std::optional<std::pair<uint32_t, uint32_t>> lengths() const;
  size_t states() const { return marks_.size(); }
  size_t edges() const { return next_.size(); }
  /// What it cost to make it: states and edges looked at.
  uint64_t work() const { return work_; }

  /// Nodes for the texts; behind one that has a mark comes what `behind` has for it, which is asked
  /// once.
  grammar::node_id compile(grammar& g, spelling how,
                           const std::function<grammar::node_id(mark)>& behind) const;

private:
  friend class automaton_builder;
  using state = uint32_t;

  /// First characters of the classes; characters of one class lead to the same states.
  std::vector<char32_t> classes_{0};
  std::vector<state> next_; ///< by state and class; complete
  std::vector<mark> marks_; ///< by state; 0 is the first state
  uint64_t work_ = 0;

  /// Throws automaton_error beyond the bounds.
  static void bound(size_t states, size_t classes);
  uint64_t work_of_edges() const { return edges() * 8; } // they are kept, and read again
  size_t class_of(char32_t c) const;
  character_classes told_apart() const;
  std::vector<bool> useful() const;
};

} // namespace lamella::model
