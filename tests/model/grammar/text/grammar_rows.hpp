/// Grammars as text, with texts that they take and texts that they do not.
#pragma once

#include "model/grammar/text/grammar_text.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lamella::tests {

inline model::grammar_states states_of_text(const std::string& text) {
  return states_of(
      [&](model::grammar& g, auto next) { return model::grammar_of_text(g, text, next); });
}

struct grammar_row {
  const char* grammar;
  std::vector<std::string> taken, not_taken;
};

inline void check(const grammar_row& x) {
  CAPTURE(std::string{x.grammar});
  auto states = states_of_text(x.grammar);
  for (const auto& text : x.taken) CHECK_MESSAGE(takes(states, text), text);
  for (const auto& text : x.not_taken) CHECK_MESSAGE(!takes(states, text), text);
}

} // namespace lamella::tests
