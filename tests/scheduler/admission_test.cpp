#include "scheduler/admission.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <deque>

using namespace lamella::scheduler;

namespace {

admission_entry entry(uint64_t id, uint32_t tokens = 7, uint32_t choices = 1,
                      bool resumed = false) {
  return {sequence_of(request_id{id}, 0), choices, tokens, tokens + choices * 16, resumed};
}

uint64_t id_of(const std::optional<admission_entry>& x) {
  return x ? static_cast<uint64_t>(request_of(x->first)) : 0;
}

} // namespace

TEST_CASE("S-M11 V-M15 waiting requests start in the order of their arrival") {
  admission a{{}};
  for (uint64_t id : {17u, 1u, 54u, 7u}) CHECK(a.offer(entry(id)) == admission_verdict::queued);
  for (uint64_t id : {17u, 1u, 54u, 7u}) {
    CHECK(id_of(a.next(1, 1000)) == id);
    CHECK(id_of(a.next(1, 1000)) == id); // asking starts nothing
    a.started();
  }
  CHECK_FALSE(a.next(1, 1000));
  CHECK(a.waiting() == 0);
  CHECK(a.waiting_tokens() == 0);
}

TEST_CASE("S-M11 V-M14 V-M15 the head starts exactly when its seats and slots are free") {
  admission a{{}};
  a.offer(entry(1, 54, 3)); // 3 seats, 54 + 48 slots
  for (uint32_t seats : {0u, 2u, 3u, 7u})
    for (uint32_t slots : {0u, 101u, 102u, 1000u})
      CHECK(a.next(seats, slots).has_value() == (seats >= 3 && slots >= 102));
}

TEST_CASE("V-M15 a large head is not overtaken by small ones behind it") {
  admission a{{}};
  a.offer(entry(1, 5400));
  a.offer(entry(2, 1));
  CHECK_FALSE(a.next(7, 1000));
  CHECK(a.withdraw(entry(1).first));
  CHECK(id_of(a.next(7, 1000)) == 2);
}

TEST_CASE("V-M15 what was running before goes first, in the order in which it was set aside") {
  admission a{{}};
  a.offer(entry(1));
  a.offer(entry(2));
  a.offer(entry(7, 7, 1, true));
  a.offer(entry(17, 7, 1, true));
  a.offer(entry(3));
  for (uint64_t id : {7u, 17u, 1u, 2u, 3u}) {
    CHECK(id_of(a.next(1, 1000)) == id);
    a.started();
  }
}

TEST_CASE("V-M15 L-M25 of what was running before, what has its KV still goes first") {
  admission a{{}};
  const auto with_kv = [](uint64_t id) {
    auto x = entry(id, 7, 1, true);
    x.has_kv = true;
    return x;
  };
  a.offer(entry(1));
  a.offer(entry(54, 7, 1, true));
  a.offer(with_kv(7));
  a.offer(entry(2, 7, 1, true));
  a.offer(with_kv(3));
  for (uint64_t id : {7u, 3u, 54u, 2u, 1u}) {
    CHECK(id_of(a.next(1, 1000)) == id);
    a.started();
  }
}

TEST_CASE("a prompt that is longer than the queue may have tokens waits alone") {
  admission a{{3, 100}};
  CHECK(a.offer(entry(1, 101)) == admission_verdict::queued);
  CHECK(a.offer(entry(2, 1)) == admission_verdict::queue_tokens);
  a.started();
  CHECK(a.offer(entry(2, 1)) == admission_verdict::queued);
  CHECK(a.offer(entry(1, 101)) == admission_verdict::queue_tokens);
}

TEST_CASE("the queue is bounded in entries and in tokens, and says by which") {
  admission a{{3, 100}};
  CHECK(a.offer(entry(1, 54)) == admission_verdict::queued);
  CHECK(a.offer(entry(2, 47)) == admission_verdict::queue_tokens);
  CHECK(a.offer(entry(3, 46)) == admission_verdict::queued);
  CHECK(a.waiting_tokens() == 100);
  CHECK(a.offer(entry(4, 0)) == admission_verdict::queued);
  CHECK(a.offer(entry(5, 0)) == admission_verdict::queue_requests);
  CHECK(a.waiting() == 3); // a refusal leaves nothing behind
  a.started();
  CHECK(a.offer(entry(6, 54)) == admission_verdict::queued);
}

TEST_CASE("accepted work is never refused: what resumes passes the bounds") {
  admission a{{1, 10}};
  CHECK(a.offer(entry(1, 10)) == admission_verdict::queued);
  CHECK(a.offer(entry(2, 54, 1, true)) == admission_verdict::queued);
  CHECK(id_of(a.next(1, 1000)) == 2);
  CHECK(a.waiting_tokens() == 64);
}

TEST_CASE("who does not wait cannot be withdrawn") {
  admission a{{}};
  a.offer(entry(1));
  CHECK_FALSE(a.withdraw(entry(2).first));
  CHECK(a.withdraw(entry(1).first));
  CHECK_FALSE(a.withdraw(entry(1).first));
  CHECK(a.waiting_tokens() == 0);
}

TEST_CASE("V-M14 V-M15 random traffic agrees with two plain lists") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    const admission_limits limits{static_cast<uint32_t>(1 + random.below(17)),
                                  1 + random.below(540)};
    admission a{limits};
    std::deque<admission_entry> resumed, fresh;
    for (uint64_t id = 1; id <= 200; ++id) {
      const auto all = [&] {
        auto list = resumed;
        list.insert(list.end(), fresh.begin(), fresh.end());
        return list;
      };
      uint64_t tokens = 0;
      for (const auto& x : all()) tokens += x.prompt_tokens;
      const auto action = random.below(8);
      if (action < 4) {
        const auto x = entry(id, static_cast<uint32_t>(random.below(100)),
                             static_cast<uint32_t>(1 + random.below(3)), random.below(5) == 0);
        const auto verdict = a.offer(x);
        if (x.resumed) {
          CHECK(verdict == admission_verdict::queued);
          resumed.push_back(x);
        } else if (all().size() >= limits.queue_requests) {
          CHECK(verdict == admission_verdict::queue_requests);
        } else if (!all().empty() && tokens + x.prompt_tokens > limits.queue_tokens) {
          CHECK(verdict == admission_verdict::queue_tokens);
        } else {
          CHECK(verdict == admission_verdict::queued);
          fresh.push_back(x);
        }
      } else if (action < 7) {
        const auto seats = static_cast<uint32_t>(random.below(5));
        const auto slots = static_cast<uint32_t>(random.below(160));
        const auto found = a.next(seats, slots);
        const auto list = all();
        const bool fits = !list.empty() && list[0].choices <= seats && list[0].slots <= slots;
        REQUIRE(found.has_value() == fits);
        if (fits) {
          CHECK(found->first == list[0].first);
          a.started();
          (resumed.empty() ? fresh : resumed).pop_front();
        }
      } else if (!fresh.empty()) {
        const auto which = random.below(fresh.size());
        CHECK(a.withdraw(fresh[which].first));
        fresh.erase(fresh.begin() + static_cast<ptrdiff_t>(which));
      }
      CHECK(a.waiting() == resumed.size() + fresh.size());
    }
  }
}
