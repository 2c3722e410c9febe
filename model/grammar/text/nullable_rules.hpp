/// Which rules have the empty text among theirs.
#pragma once

#include "model/grammar/text/grammar_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lamella::model {

struct nullable_rules {
  std::vector<bool> are;  ///< by number
  uint64_t looked_at = 0; ///< parts, each for what it has in it: linear in the grammar
};

/// `number` has all rules by their names. `has_empty` tells it of expressions.
nullable_rules find_nullable(const std::vector<grammar_rule>& rules,
                             const std::map<std::string, size_t>& number,
                             const std::function<bool(const grammar_part&)>& has_empty);

} // namespace lamella::model
