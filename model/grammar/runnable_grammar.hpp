/// What is known of a grammar before it runs.
#pragma once

#include "model/grammar/grammar.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamella::model {

/// Bytes by what a grammar tells apart: wherever one of a class may come, each of it may, and leads
/// to the same.
struct byte_classes {
  explicit byte_classes(const grammar& g);

  std::array<uint8_t, 256> of{};   ///< by byte
  std::vector<uint8_t> first;      ///< by class: one of its bytes, a letter where it has one
  std::vector<uint8_t> first_of{}; ///< by way of the grammar: one of its bytes, of those
  byte_set firsts;                 ///< of `first`
};

/// A grammar that does not change any more, and what is known of its nodes.
struct runnable_grammar {
  /// Places at which a text may be at once.
  static constexpr size_t places_max = 8'192;

  /// `available`: bytes of which a text can be made up to its end. Throws grammar_error where no
  /// text is possible, or where one of the next two bytes of a text may be at more places.
  runnable_grammar(grammar g, const byte_set& available);

  const grammar rules;
  const byte_classes classes;
  const std::vector<bool> productive; ///< by node: there is a text from here to its rule's end
  const std::vector<bool> nullable;   ///< by node: the empty text is one
  const std::vector<uint32_t> bytes;  ///< by node: none is shorter
  uint64_t visits = 0;                ///< of nodes, to find out that places_max is not passed
};

} // namespace lamella::model
