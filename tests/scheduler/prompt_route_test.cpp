#include "scheduler/prompt_route.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;

namespace {
constexpr auto prompt = machine_pool::prompt, token = machine_pool::token,
               mixed = machine_pool::mixed;
using queues = std::vector<prompt_queue>;

/// The machine, or -1; `joins` as asked for.
int route(const queues& x, uint64_t tokens, bool joins = false, uint64_t turn = 0) {
  const auto way = route_prompt(x, tokens, 1000, turn);
  if (!way) return -1;
  CHECK(way->joins_mixed == joins);
  return static_cast<int>(way->machine);
}
prompt_queue busy(machine_pool pool, uint64_t pending) { return {pool, pending, false}; }
} // namespace

TEST_CASE("S-M05 a prompt goes to the prompt machine with the shortest queue") {
  CHECK(route({busy(prompt, 300), busy(prompt, 200), {token}}, 100) == 1);
  CHECK(route({{prompt}, {prompt}, {token}}, 100) == 0);
  CHECK(route({{prompt}, {prompt}, {token}}, 100, false, 1) == 1); // idle ones take turns
  CHECK(route({{prompt, 0, true, true}, busy(prompt, 900), {token}}, 100) == 1);
}

TEST_CASE("S-M05 machines of a pool with equal queues take turns, whoever stands beside them") {
  const queues x{{token}, {prompt}, {prompt}, busy(mixed, 1), {prompt}};
  for (uint64_t turn = 0; turn < 9; ++turn) {
    const int wanted[] = {1, 2, 4};
    CHECK(route(x, 100, false, turn) == wanted[turn % 3]);
  }
  CHECK(shortest_queue(queues{busy(prompt, 4), {prompt}, {prompt}}, 2, prompt) == 2u);
  CHECK(shortest_queue(queues{busy(prompt, 4), {prompt}, {prompt}}, 3, prompt) == 1u);
  CHECK(shortest_queue(queues{busy(prompt, 3), busy(prompt, 1), busy(prompt, 2)}, 2, prompt) == 1u);
  CHECK_FALSE(shortest_queue(queues{{token}}, 5, prompt));
}

TEST_CASE("S-M03 S-M07 prompts overflow: to mixed machines, then to a token machine") {
  CHECK(route({busy(prompt, 900), {token}, {token}}, 100) == 0);
  CHECK(route({busy(prompt, 901), busy(token, 5), {token}}, 100, true) == 2);
  CHECK(route({busy(prompt, 901), {token}, busy(mixed, 900)}, 100)
        == 2); // who takes some takes more
  CHECK(route({busy(prompt, 901), {token}, busy(mixed, 901)}, 100, true) == 1);
  CHECK(route({busy(prompt, 901), busy(mixed, 901)}, 100) == -1); // nobody is left
}

TEST_CASE("S-M07 an idle machine takes a prompt of any length") {
  CHECK(route({{prompt}, {token}}, 1'000'000) == 0);
  CHECK(route({busy(prompt, 1), {mixed}, {token}}, 1'000'000) == 1);
  CHECK(route({}, 1) == -1);
}
