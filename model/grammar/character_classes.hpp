/// Characters by what a set of texts tells apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lamella::model {

/// Wherever one character of a class may come next, each of the class may, and leads to the same.
struct character_classes {
  /// More are not worth it: what has so many tells most characters apart.
  static constexpr uint32_t classes_max = 64;

  /// The characters from `first` up to those of the next range.
  struct range {
    char32_t first = 0;
    uint32_t of = 0;
    friend bool operator==(const range&, const range&) = default;
  };
  std::vector<range> ranges; ///< ascending, from 0; none: nothing is known

  /// Ranges from the first to the last character, ascending.
  using set = std::span<const std::pair<char32_t, char32_t>>;
  /// What sets of characters tell apart; nothing where that is more than classes_max, or where they
  /// have more than ranges_max ranges together.
  static constexpr size_t ranges_max = 512;
  static character_classes of_sets(std::span<const set> sets);

  uint32_t of(char32_t c) const;
  uint32_t count() const; ///< of the classes
  /// A character of each class that has one which stands for itself in JSON strings.
  std::vector<char32_t> plain_ones() const;
  friend bool operator==(const character_classes&, const character_classes&) = default;
};

} // namespace lamella::model
