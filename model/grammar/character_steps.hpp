/// Where characters lead to from the states of one walk.
#pragma once

#include "model/grammar/grammar_states.hpp"
#include "model/grammar/hash_index.hpp"

#include <cstdint>
#include <vector>

namespace lamella::model {

/// States by numbers, and by number and class of characters what is known of the next one. So a
/// step by a character is a look at one table. Only so many states have a row of it: the others'
/// numbers are made of the states themselves, and nothing is known of them.
class character_steps {
public:
  using state_id = grammar_states::state_id;
  static constexpr uint32_t unknown = ~uint32_t{0};
  static constexpr uint32_t dead = 0;                  ///< number of the dead state
  static constexpr size_t known_max = size_t{1} << 20; ///< steps: 4 MiB

  explicit character_steps(size_t classes) : width_{static_cast<uint32_t>(classes)} {
    number(grammar_states::dead);
  }

  uint32_t number(state_id x) {
    const auto hash = mix(0, x);
    const auto there = rows_.find(hash, [&](uint32_t row) { return states_[row] == x; });
    if (there != hash_index::none) return there * width_;
    if (known_.size() + width_ > known_max && !states_.empty()) return without_row | x;
    const auto made = static_cast<uint32_t>(states_.size());
    states_.push_back(x);
    rows_.add(hash, made);
    known_.resize(known_.size() + width_, unknown);
    return made * width_;
  }
  state_id state(uint32_t number) const {
    return (number & without_row) != 0 ? number & ~without_row : states_[number / width_];
  }

  uint32_t known(uint32_t from, uint32_t of_class) const {
    return (from & without_row) != 0 ? unknown : known_.data()[from + of_class];
  }
  void learn(uint32_t from, uint32_t of_class, uint32_t to) {
    if ((from & without_row) == 0) known_[from + of_class] = to;
  }

private:
  static constexpr uint32_t without_row = uint32_t{1} << 31; ///< no state has so high an id

  const uint32_t width_;
  std::vector<state_id> states_; ///< by row
  hash_index rows_;
  std::vector<uint32_t> known_; ///< by row and class; a number is where its row begins
};

} // namespace lamella::model
