/// Sets of characters, and how a grammar spells them.
#pragma once

#include "model/grammar/grammar.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace lamella::model {

/// A set of Unicode scalar values: code points without the surrogates.
class code_points {
public:
  using range = std::pair<char32_t, char32_t>; ///< both included

  code_points() = default;
  code_points(std::initializer_list<range> ranges);
  static code_points all() { return {{0, 0x10FFFF}}; }
  /// Of ranges in any order, which are sorted once.
  static code_points of(std::vector<range> ranges);

  /// At little cost where it comes behind all others.
  void add(char32_t low, char32_t high);
  code_points without(const code_points& others) const;

  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  /// Ascending; between two of them at least one is missing.
  const std::vector<range>& ranges() const { return ranges_; }

private:
  std::vector<range> ranges_;
};

/// As itself, or within the quotes of a JSON string, where some characters are escaped.
enum class spelling : uint8_t { plain, json };

/// One character of the set, in UTF-8. In JSON characters that must be escaped are, in their
/// shortest form, and no others.
grammar::node_id one_of(grammar& g, const code_points& set, spelling how, grammar::node_id next);

} // namespace lamella::model
