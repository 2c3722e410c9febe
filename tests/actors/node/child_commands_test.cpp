// The command lines of worker processes: on which processors they are put.
#include "actors/node/child_commands.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace lamella::actors::test {

namespace {

/// Two NUMA nodes of two cores each.
const std::vector<processor> two_nodes{{0, 0, 0, 1}, {1, 1, 0, 1}, {2, 2, 1, 1}, {3, 3, 1, 1}};
const std::vector<processor> one_node{{0, 0, 0, 1}, {1, 1, 0, 1}};

} // namespace

TEST_CASE("child processes of a pool are bound to the nodes in turn") {
  config::pool_settings pool;
  CHECK(processors_for(pool, two_nodes, 0, 2) == std::set<unsigned>{0, 1});
  CHECK(processors_for(pool, two_nodes, 1, 2) == std::set<unsigned>{2, 3});
  CHECK(processors_for(pool, two_nodes, 0, 1).empty()); // one alone uses both
  CHECK(processors_for(pool, one_node, 0, 2).empty());
  pool.threads = 2;
  CHECK(processors_for(pool, two_nodes, 1, 2) == std::set<unsigned>{2, 3});
  pool.threads = 3; // more than a node has
  CHECK(processors_for(pool, two_nodes, 1, 2).empty());
  pool.threads.reset();
  pool.device = "cuda:0";
  CHECK(processors_for(pool, two_nodes, 1, 2).empty());
}

TEST_CASE("a child process is told its processors, and nothing where it has all") {
  const config::settings options;
  const scheduler::seat where{scheduler::worker_role::attention, 1};
  const auto bound = child_of(options, where, "lamella", 7, {2, 3, 5}).words;
  const auto at = std::ranges::find(bound, "--processors");
  REQUIRE(at != bound.end());
  CHECK(*std::next(at) == "2-3,5");
  CHECK(std::ranges::count(child_of(options, where, "lamella", 7, {}).words, "--processors") == 0);
}

} // namespace lamella::actors::test
