/// Walking through grammars, for their tests.
#pragma once

#include "base/utf8.hpp"
#include "model/grammar/grammar_states.hpp"
#include "tests/random.hpp"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::tests {

inline model::byte_set all_bytes() { return model::bytes_between(0, 255); }

/// A class of so many characters, none of which is next to another.
inline std::string class_of(size_t count) {
  std::string all = "[";
  for (size_t i = 0; i < count; ++i) append_utf8(all, static_cast<char32_t>(0x100 + 2 * i));
  return all + "]";
}

/// The states of the grammar that `build` makes: it is given the end and returns the first node.
inline model::grammar_states states_of(
    const std::function<model::grammar::node_id(model::grammar&, model::grammar::node_id)>& build,
    const model::byte_set& available = all_bytes()) {
  model::grammar g;
  g.begin(0, build(g, g.end()));
  constexpr uint32_t reach = 256;
  return {std::make_shared<model::runnable_grammar>(std::move(g), available), reach};
}

/// Is it a text of the grammar?
inline bool takes(model::grammar_states& states, std::string_view text) {
  auto at = states.start();
  for (const char byte : text) {
    at = states.step(at, static_cast<uint8_t>(byte));
    if (at == model::grammar_states::dead) return false;
  }
  return states.accepts(at);
}

/// What stands for an end that is not found among so many states.
constexpr std::string_view far_end = "<the end is far>";
constexpr size_t looked_for_end_max = 4'000;

/// The shortest way from a state to the end of a text.
inline std::string shortest_end(model::grammar_states& states,
                                model::grammar_states::state_id from) {
  struct step {
    model::grammar_states::state_id state;
    size_t before;
    char byte;
  };
  std::vector<step> steps{{from, 0, 0}};
  std::set<model::grammar_states::state_id> seen{from};
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i == looked_for_end_max) return std::string{far_end};
    if (states.accepts(steps[i].state)) {
      std::string way;
      for (auto at = i; at != 0; at = steps[at].before) way.insert(way.begin(), steps[at].byte);
      return way;
    }
    for (unsigned b = 0; b < 256; ++b) {
      const auto next = states.step(steps[i].state, static_cast<uint8_t>(b));
      if (next != model::grammar_states::dead && seen.insert(next).second)
        steps.push_back({next, i, static_cast<char>(b)});
    }
  }
  return "<there is no end>";
}

/// A text of the grammar, drawn byte by byte; beyond `long_enough` bytes by the shortest way.
inline std::string draw_text(model::grammar_states& states, splitmix& random,
                             size_t long_enough = 60) {
  std::string text;
  for (auto at = states.start(); text.size() < long_enough;) {
    std::vector<uint8_t> possible;
    for (unsigned b = 0; b < 256; ++b)
      if (states.step(at, static_cast<uint8_t>(b)) != model::grammar_states::dead)
        possible.push_back(static_cast<uint8_t>(b));
    if (states.accepts(at) && (possible.empty() || random.below(4) == 0)) return text;
    if (possible.empty()) return text + "<nothing goes on here>";
    const auto byte = possible[random.below(possible.size())];
    text += static_cast<char>(byte);
    at = states.step(at, byte);
    if (text.size() == long_enough || random.below(40) == 0) return text + shortest_end(states, at);
  }
  return text;
}

} // namespace lamella::tests
