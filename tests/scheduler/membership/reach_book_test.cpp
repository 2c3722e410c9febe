// Who hears whom over the data plane, as workers tell it.
#include "scheduler/membership/reach_book.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {

constexpr seat r0{worker_role::model, 0}, r1{worker_role::model, 1};
constexpr seat s0{worker_role::attention, 0}, s1{worker_role::attention, 1};

/// Two replicas and two shards that tell what they hear every 100 ms.
struct four {
  four() {
    for (const auto& x : {r0, r1, s0, s1}) book.sits(x, true);
  }
  /// What all tell for so long. `broken`: pairs that fail, since when; `silent` says nothing.
  void go_on(std::chrono::milliseconds how_long, const std::set<failed_pair>& broken = {},
             const std::set<seat>& silent = {}) {
    for (const auto end = now + how_long; now < end; now += 100ms) {
      for (const auto& by : {r0, r1, s0, s1}) {
        if (silent.contains(by)) continue;
        std::vector<reach_view> views;
        for (const auto& peer : {s0, s1}) {
          if (peer == by) continue;
          auto& since = failing[{by, peer}];
          const bool fails = broken.contains(std::minmax(by, peer)) || silent.contains(peer);
          if (!fails) since.reset();
          if (fails && !since) since = now;
          views.push_back(
              {peer, !fails,
               since ? std::chrono::duration_cast<std::chrono::milliseconds>(now - *since) : 0ms});
        }
        book.told(by, views, now);
      }
    }
  }
  bool proven(const seat& x, const std::set<seat>& fenced = {}) const {
    return book.proven(x, fenced, now);
  }
  reach_book book;
  reach_book::time_point now{1h};
  std::map<std::pair<seat, seat>, std::optional<reach_book::time_point>> failing;
};

} // namespace

TEST_CASE_FIXTURE(four, "A1 a pair fails when its questions have failed for long enough") {
  go_on(1s);
  CHECK(book.failed(now).empty());
  CHECK_FALSE(book.doubtful());
  go_on(300ms, {{r0, s1}});
  CHECK(book.doubtful());
  CHECK(book.failed(now).empty());
  go_on(100ms, {{r0, s1}});
  CHECK(book.failed(now) == std::set<failed_pair>{{r0, s1}});
  go_on(100ms);
  CHECK(book.failed(now).empty());
}

TEST_CASE_FIXTURE(four, "A1 where workers may be silent for longer, pairs may fail for longer") {
  CHECK(failing_needed(1s) == 300ms);
  CHECK(failing_needed(3s) == 300ms);
  CHECK(failing_needed(20s) == 2s);
  book = reach_book{failing_needed(20s)};
  for (const auto& who : {r0, r1, s0, s1}) book.sits(who, true);
  go_on(3s);
  go_on(2s, {{r0, s1}});
  CHECK(book.failed(now).empty());
  go_on(100ms, {{r0, s1}});
  CHECK(book.failed(now) == std::set<failed_pair>{{r0, s1}});
}

TEST_CASE_FIXTURE(four, "A1 pairs that fail a little later are waited for, and not for long") {
  go_on(1s);
  go_on(200ms, {{r0, s1}});
  go_on(200ms, {{r0, s1}, {r1, s1}}); // the one for 300 ms, the other for 100
  CHECK(book.failed(now).empty());
  go_on(200ms, {{r0, s1}, {r1, s1}});
  CHECK(book.failed(now).size() == 2);
  go_on(100ms, {{r0, s1}, {r1, s1}, {s0, s1}}); // whoever is new comes too late
  CHECK(book.failed(now).size() == 2);
}

TEST_CASE_FIXTURE(four, "A1 who stands still is not found here, nor when it goes on") {
  go_on(1s);
  go_on(2s, {}, {s1});
  CHECK(book.failed(now).empty());
  go_on(100ms);
  CHECK(book.failed(now).empty());
  // It went on, and its peers have not asked it again yet.
  four slow;
  slow.go_on(1s);
  slow.go_on(2s, {}, {s1});
  slow.go_on(200ms, {{r0, s1}, {r1, s1}, {s0, s1}});
  CHECK(slow.book.failed(slow.now).empty());
  slow.go_on(300ms, {{r0, s1}, {r1, s1}, {s0, s1}}); // still not: then it is at fault
  CHECK(slow.book.failed(slow.now).size() == 3);
}

TEST_CASE_FIXTURE(four, "A1 who has left, or says no more, fails with nobody") {
  go_on(1s, {{r0, s1}});
  CHECK(book.failed(now).size() == 1);
  CHECK(book.failed(now + 1s).empty());
  book.left(s1);
  CHECK(book.failed(now).empty());
}

TEST_CASE_FIXTURE(four, "A1 a worker is proven when all hear it, and it them") {
  CHECK_FALSE(proven(r0));
  go_on(100ms, {{r0, s1}});
  CHECK_FALSE(proven(r0));
  CHECK_FALSE(proven(s1));
  CHECK(proven(r1));
  CHECK(proven(s0));
  CHECK(proven(r0, {s1})); // nobody hears who is fenced
  go_on(100ms);
  CHECK(proven(r0));
  go_on(900ms, {}, {s1});
  CHECK(proven(r0)); // nor who says nothing
  book.sits({worker_role::attention, 2}, true);
  CHECK(proven(r0)); // or nothing yet
  CHECK_FALSE(proven({worker_role::attention, 2}));
  CHECK_FALSE(proven({worker_role::attention, 9}));
}

TEST_CASE_FIXTURE(four, "A1 where data planes cannot ask there is nothing to prove") {
  book.sits(s0, false);
  CHECK(proven(s0));
  go_on(1s, {{r0, s0}});
  CHECK(proven(r0));
  CHECK(book.failed(now).empty());
}

TEST_CASE("A1 who is fenced again rests longer, up to a minute, and then starts over") {
  fence_rest x;
  fence_rest::time_point now{1h};
  CHECK(x.rest() == 0ms);
  for (const auto rest :
       {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 16000ms, 32000ms, 60000ms, 60000ms}) {
    x.fenced(now);
    CHECK(x.rest() == rest);
    now += 30s;
  }
  now += 10min;
  x.fenced(now);
  CHECK(x.rest() == 500ms);
}

TEST_CASE_FIXTURE(four,
                  "A1 links that are torn again and again count, single bits that flip do not") {
  go_on(1s);
  book.torn(s0, r0, 3, now); // of one pair: before it may be at fault, another is looked for
  CHECK(book.torn_again(now).empty());
  book.torn(r1, s0, 1, now);
  CHECK(book.torn_again(now).empty()); // once is no reason
  book.torn(r1, s0, 2, now);
  CHECK(book.torn_again(now) == std::set<failed_pair>{{r0, s0}, {r1, s0}});
  book.torn(r1, s0, 2, now + 5s); // the same two
  CHECK(book.torn_again(now + 9s).size() == 2);
  CHECK(book.torn_again(now + 11s).empty()); // long ago
}

TEST_CASE_FIXTURE(four,
                  "A1 torn links are counted from both ends, and not of who sat there before") {
  go_on(1s);
  book.torn(s0, r0, 2, now);
  book.torn(r0, s0, 2, now);
  CHECK(book.torn_again(now) == std::set<failed_pair>{{r0, s0}});
  book.left(r0);
  book.sits(r0, true);
  CHECK(book.torn_again(now).empty());
  book.torn(s0, r0, 2, now); // of the one before
  CHECK(book.torn_again(now).empty());
  book.torn(s0, r0, 1'000'000, now);
  CHECK(book.torn_again(now).size() == 1);
}
