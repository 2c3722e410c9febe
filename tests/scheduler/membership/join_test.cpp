// Who may join: challenges, failures, and what must be equal on both sides.
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/join_guard.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {
constexpr join_guard::time_point start{std::chrono::hours{1}};
}

TEST_CASE("A nonce is good once, for five seconds, and only if it was issued") {
  join_guard guard;
  CHECK_FALSE(guard.redeem("never sent", start));
  CHECK(guard.issue("a", start));
  CHECK_FALSE(guard.issue("a", start)); // the same again would be good twice
  CHECK(guard.redeem("a", start + 5s));
  CHECK_FALSE(guard.redeem("a", start + 5s));
  CHECK(guard.issue("b", start));
  CHECK_FALSE(guard.redeem("b", start + 5001ms));
  CHECK_FALSE(guard.redeem("b", start)); // too late is used up, too
}

TEST_CASE("Open challenges are bounded and old ones make room") {
  join_guard guard;
  for (size_t i = 0; i < join_guard::challenges_max; ++i)
    CHECK(guard.issue(std::to_string(i), start));
  CHECK_FALSE(guard.issue("one more", start + 5s));
  CHECK(guard.issue("one more", start + 6s));
}

TEST_CASE("Five wrong proofs within a minute block their origin, and nobody else, for a minute") {
  join_guard guard;
  for (int i = 0; i < 4; ++i) guard.failed("10.0.0.1", start + i * 10s);
  CHECK_FALSE(guard.blocked("10.0.0.1", start + 40s));
  guard.failed("10.0.0.1", start + 50s);
  CHECK(guard.blocked("10.0.0.1", start + 50s) == 60s);
  CHECK(guard.blocked("10.0.0.1", start + 109500ms) == 1s);
  CHECK_FALSE(guard.blocked("10.0.0.1", start + 110s));
  CHECK_FALSE(guard.blocked("10.0.0.2", start + 50s));
  // Spread over more than a minute they do not.
  for (int i = 0; i < 54; ++i) guard.failed("10.0.0.3", start + i * 16s);
  CHECK_FALSE(guard.blocked("10.0.0.3", start + 53 * 16s));
}

TEST_CASE("The number of remembered origins is bounded, and blocked ones stay blocked") {
  join_guard guard;
  for (int i = 0; i < 5; ++i) guard.failed("first", start);
  for (size_t i = 0; i < 3 * join_guard::origins_max; ++i)
    for (int k = 0; k < 5; ++k) guard.failed("other" + std::to_string(i), start + 1s);
  CHECK(guard.blocked("first", start + 1s));
  // An origin beyond the bound is not remembered, so it is not blocked either.
  CHECK_FALSE(guard.blocked("other" + std::to_string(3 * join_guard::origins_max - 1), start + 1s));
  for (int k = 0; k < 5; ++k) guard.failed("late", start + 200s);
  CHECK(guard.blocked("late", start + 200s));
}

TEST_CASE("What differs is said with both values, and an attention shard needs no weights") {
  const identity ours{"1.2", "avx512", "30 layers", 0xabc, true};
  CHECK_FALSE(refuse_worker(ours, ours));
  auto theirs = ours;
  theirs.version = "1.3";
  theirs.kernels = "portable";
  theirs.model_digest = 0xdef;
  const auto why = refuse_worker(ours, theirs);
  REQUIRE(why);
  CHECK(*why
        == "version: the service has 1.2, the worker 1.3; kernel set: the service has avx512, the "
           "worker portable; model digest: the service has 0000000000000abc, the worker "
           "0000000000000def");
  theirs = ours;
  theirs.model_digest = 0;
  CHECK(refuse_worker(ours, theirs));
  theirs.with_weights = false;
  CHECK_FALSE(refuse_worker(ours, theirs));
  theirs.shapes = "";
  CHECK(refuse_worker(ours, theirs)->find("the worker none") != std::string::npos);
}
