/// The parts of a regular expression; for its parser and its compiler.
#pragma once

#include "model/grammar/regular_expression.hpp"

#include <vector>

namespace lamella::model {

struct regular_expression::part {
  enum class kind : uint8_t {
    characters, ///< one of `set`
    sequence,   ///< all of `inner`, in order; none: nothing
    choice,     ///< one of `inner`
    repeat,     ///< inner[0], min to max times
    begin,      ///< ^
    end         ///< $
  };
  kind what = kind::sequence;
  code_points set;
  std::vector<part> inner;
  uint32_t min = 0, max = 0;
  bool is_lazy = false; ///< repeat: as few times as possible
};

struct regular_expression::alternative {
  part inner;
  bool begins = false, ends = false; ///< it had ^ at its beginning, $ at its end
};

} // namespace lamella::model
