#include "scheduler/batch/iteration_line.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using std::chrono::nanoseconds;

namespace {

std::vector<launch_span> row() { return {{0, 3u}}; }
std::vector<launch_span> piece() { return {{0, 3u}, {1, prefill_piece{sequence_id{7}, 5, 11}}}; }

} // namespace

TEST_CASE("iterations are numbered, and only the oldest may end") {
  iteration_line line;
  CHECK(line.idle());
  line.begin(row(), false, nanoseconds{17});
  line.begin(row(), false, nanoseconds{18});
  CHECK(line.flights().size() == 2);
  CHECK(line.is_current(1, 0));
  CHECK_FALSE(line.is_current(2, 0));
  CHECK(line.contains(2, 0));
  CHECK_FALSE(line.contains(2, 1));
  CHECK(line.end().launched == nanoseconds{17});
  CHECK(line.is_current(2, 0));
  CHECK(line.newest().iteration == 2);
}

TEST_CASE("decision 20: one iteration runs ahead of rows, none of prompts or after a failure") {
  iteration_line line;
  CHECK_FALSE(line.may_run_ahead()); // of nothing
  line.begin(row(), false, {});
  CHECK(line.may_run_ahead());
  line.begin(row(), false, {});
  CHECK_FALSE(line.may_run_ahead());
  line.fail(false);
  line.begin(row(), false, {});
  CHECK_FALSE(line.may_run_ahead());
  line.end();
  line.begin(piece(), false, {});
  CHECK_FALSE(line.may_run_ahead());
}

TEST_CASE("a failure drops all in flight; its prompts run again under the same number") {
  iteration_line line;
  line.begin(piece(), false, {});
  const auto again = line.fail(true);
  REQUIRE(again.size() == 1);
  CHECK(again[0].sequence == sequence_id{7});
  CHECK(line.idle());
  CHECK((line.failures() == 1 && line.silent()));
  const auto& flight = line.begin(piece(), true, {});
  CHECK((flight.iteration == 1 && flight.attempt == 1));
  CHECK((flight.has_tokens() && flight.has_prompts()));
  CHECK_FALSE(line.is_current(1, 0)); // the answer of the attempt before is too late
  CHECK(line.is_current(1, 1));
  CHECK(line.fail(false).size() == 1);
  CHECK((line.failures() == 2 && line.silent()));
  line.begin(piece(), true, {});
  line.end();
  CHECK((line.failures() == 0 && !line.silent()));
  CHECK(line.iteration() == 1);
}
