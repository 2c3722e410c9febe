#include "scheduler/prefill_plan.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace lamella::scheduler;

namespace {
sequence_id id(uint64_t x) { return sequence_of(request_id{x}, 0); }
} // namespace

TEST_CASE("every token is in exactly one piece, in order, in chunks that are full while it lasts") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    const auto chunk = static_cast<uint32_t>(1 + random.below(54));
    const auto prompts_max = static_cast<uint32_t>(1 + random.below(7));
    prefill_plan plan{chunk};
    std::map<sequence_id, uint32_t> tokens, done;
    std::vector<sequence_id> order, finished;
    uint64_t next = 1, left = 0;
    for (int step = 0; step < 200 || !plan.empty(); ++step) {
      if (step < 200 && random.below(3) == 0) {
        const auto count = static_cast<uint32_t>(1 + random.below(170));
        tokens[id(next)] = count;
        order.push_back(id(next));
        left += count;
        plan.add(id(next++), count);
      }
      CHECK(plan.waiting_tokens() == left);
      const auto pieces = plan.next(prompts_max);
      CHECK(pieces.empty() == (left == 0));
      CHECK(pieces.size() <= prompts_max);
      uint32_t total = 0;
      for (const auto& x : pieces) {
        CHECK(x.tokens > 0);
        CHECK(x.position == done[x.sequence]);
        done[x.sequence] += x.tokens;
        CHECK(x.last == (done[x.sequence] == tokens[x.sequence]));
        if (x.last) finished.push_back(x.sequence);
        total += x.tokens;
      }
      CHECK(total <= chunk);
      if (pieces.size() < prompts_max) CHECK(total == std::min<uint64_t>(chunk, left));
      left -= total;
    }
    CHECK(done == tokens);
    CHECK(finished == order); // first come, first served
  }
}

TEST_CASE("a prompt of one chunk more or less is cut where it must") {
  for (uint32_t tokens : {15u, 16u, 17u, 31u, 32u, 33u}) {
    prefill_plan plan{16};
    plan.add(id(1), tokens);
    uint32_t iterations = 0, seen = 0;
    while (!plan.empty()) {
      const auto pieces = plan.next(7);
      REQUIRE(pieces.size() == 1);
      seen += pieces[0].tokens;
      CHECK(pieces[0].last == (seen == tokens));
      ++iterations;
    }
    CHECK(iterations == (tokens + 15) / 16);
  }
}

TEST_CASE("a dropped prompt gives no more pieces, and the others keep their order") {
  prefill_plan plan{10};
  for (uint64_t x : {1u, 2u, 3u}) plan.add(id(x), 7);
  CHECK(plan.next(1).at(0).sequence == id(1));
  CHECK(plan.remove(id(2)));
  CHECK_FALSE(plan.remove(id(2)));
  CHECK_FALSE(plan.remove(id(1))); // it is done
  CHECK(plan.waiting_tokens() == 7);
  const auto pieces = plan.next(7);
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].sequence == id(3));
  CHECK(plan.next(7).empty());
}

TEST_CASE("a prompt that was begun can be dropped too") {
  prefill_plan plan{10};
  plan.add(id(1), 54);
  plan.next(1);
  CHECK(plan.remove(id(1)));
  CHECK(plan.empty());
}
