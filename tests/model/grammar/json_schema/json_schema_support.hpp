/// What grammars of schemas take, for their tests.
#pragma once

#include "model/grammar/json_schema/json_schema.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lamella::tests::schemas {

inline model::grammar_states states_of(std::string_view schema) {
  const auto value = parse_json(schema, {.depth = 64});
  return tests::states_of(
      [&](model::grammar& g, auto next) { return model::json_schema_grammar(g, value, next); });
}

struct expectation {
  const char* schema;
  std::vector<std::string> taken, refused;
};

inline void check(const std::vector<expectation>& expectations) {
  for (const auto& x : expectations) {
    CAPTURE(x.schema);
    auto states = states_of(x.schema);
    for (const auto& text : x.taken) CHECK_MESSAGE(takes(states, text), text);
    for (const auto& text : x.refused) CHECK_MESSAGE(!takes(states, text), text);
  }
}

} // namespace lamella::tests::schemas
