// Poisoned requests are found among others by running them apart, and nobody else is blamed.
#include "scheduler/membership/suspects.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace lamella::scheduler;
using leave = suspects::leave;

namespace {

request_id id(uint64_t x) { return request_id{x}; }

std::vector<in_flight> flights(std::initializer_list<uint64_t> ids, uint32_t tokens = 3) {
  std::vector<in_flight> all;
  for (auto x : ids) all.push_back({id(x), tokens});
  return all;
}

/// Some replicas that serve requests, of which some kill what serves them.
class world {
public:
  struct served {
    uint32_t length = 0;            ///< tokens until it is over
    std::optional<uint32_t> deadly; ///< it kills when it would draw its token of this number
    uint32_t tokens = 0;
    bool over = false, failed = false;
  };

  world(std::vector<served> requests, uint32_t replicas, bool kills_shards, uint64_t seed)
      : requests_{std::move(requests)}, replicas_{replicas},
        kills_shards_{kills_shards}, random_{seed} {}

  /// Until all are over. Returns the number of ends.
  uint32_t run() {
    uint32_t ends = 0;
    for (uint32_t epoch = 0; !all_over(); ++epoch) {
      REQUIRE(epoch < 10'000);
      if (run_epoch()) ++ends;
    }
    return ends;
  }

  const std::vector<served>& requests() const { return requests_; }
  const suspects& found() const { return suspects_; }

private:
  bool all_over() const {
    return std::ranges::all_of(requests_, [](const auto& r) { return r.over || r.failed; });
  }

  /// Where a request runs, if it may: the group under test alone on the last replica.
  std::optional<uint32_t> place_of(size_t i) const {
    const auto x = suspects_.leave_of(id(i + 1));
    if (x == leave::wait) return std::nullopt;
    if (x == leave::in_test) return replicas_ - 1;
    const bool apart = suspects_.hunting();
    if (apart && replicas_ == 1) return std::nullopt;
    return static_cast<uint32_t>(i) % (apart ? replicas_ - 1 : replicas_);
  }

  /// One token for everybody who may run, again and again until a worker ends or a test does.
  bool run_epoch() {
    bool ended_test = false;
    while (!ended_test && !all_over()) {
      std::vector<std::pair<size_t, uint32_t>> running;
      for (size_t i = 0; i < requests_.size(); ++i)
        if (!requests_[i].over && !requests_[i].failed)
          if (const auto place = place_of(i)) running.emplace_back(i, *place);
      REQUIRE_FALSE(running.empty());
      std::shuffle(running.begin(), running.end(), random_); // who kills first
      for (const auto& [i, place] : running) {
        const auto& r = requests_[i];
        if (r.deadly != r.tokens) continue;
        end_worker(running, kills_shards_ ? std::nullopt : std::optional{place});
        return true;
      }
      for (const auto& [i, place] : running) {
        auto& r = requests_[i];
        ended_test = suspects_.on_tokens(id(i + 1), ++r.tokens) || ended_test;
        if (r.tokens < r.length) continue;
        r.over = true;
        ended_test = suspects_.forget(id(i + 1)) || ended_test;
      }
    }
    return false;
  }

  void end_worker(const std::vector<std::pair<size_t, uint32_t>>& running,
                  std::optional<uint32_t> which) {
    std::vector<in_flight> there;
    for (const auto& [i, place] : running)
      if (!which || place == *which) there.push_back({id(i + 1), requests_[i].tokens});
    if (const auto found = suspects_.on_end(there))
      requests_.at(static_cast<uint64_t>(*found) - 1).failed = true;
  }

  std::vector<served> requests_;
  uint32_t replicas_;
  bool kills_shards_;
  std::mt19937_64 random_;
  suspects suspects_;
};

} // namespace

TEST_CASE("one end makes nobody suspect, and neither do two without anybody in both") {
  suspects x;
  CHECK_FALSE(x.on_end(flights({1, 2})));
  CHECK_FALSE(x.on_end(flights({3, 4})));
  CHECK_FALSE(x.on_end({}));
  CHECK_FALSE(x.hunting());
  CHECK(x.leave_of(id(1)) == leave::with_others);
}

TEST_CASE("who was in both ends is tested in halves, and the others go on") {
  suspects x;
  x.on_end(flights({1, 2, 3, 4, 9}));
  x.on_end(flights({1, 2, 3, 4, 5}));
  CHECK(x.hunting());
  CHECK_FALSE(x.others_wait());
  for (auto r : {1, 2}) CHECK(x.leave_of(id(r)) == leave::in_test);
  for (auto r : {3, 4}) CHECK(x.leave_of(id(r)) == leave::wait);
  for (auto r : {5, 9, 77}) CHECK(x.leave_of(id(r)) == leave::with_others);
}

TEST_CASE(
    "a group is free again after eight clean tokens of each, and forgotten ends count no more") {
  suspects x;
  x.on_end(flights({1, 2, 3, 4}));
  x.on_end(flights({1, 2, 3, 4}));
  for (uint32_t t = 3; t < 11; ++t) CHECK_FALSE(x.on_tokens(id(1), t));
  CHECK_FALSE(x.on_tokens(id(1), 11));
  CHECK_FALSE(x.on_tokens(id(2), 5));
  CHECK(x.leave_of(id(1)) == leave::in_test);
  CHECK_FALSE(x.on_tokens(id(2), 12));
  CHECK(x.on_tokens(id(2), 13));
  CHECK(x.leave_of(id(1)) == leave::with_others);
  CHECK(x.leave_of(id(3)) == leave::in_test);
  CHECK(x.ends_of(id(1)) == 0);
  CHECK(x.ends_of(id(3)) == 2);
  x.on_tokens(id(3), 0);
  x.on_tokens(id(4), 0);
  CHECK_FALSE(x.on_tokens(id(3), 8));
  CHECK_FALSE(x.on_tokens(id(4), 7));
  CHECK(x.on_tokens(id(4), 8));
  CHECK_FALSE(x.hunting());
}

TEST_CASE("poisonous is who was alone at two ends at the same place") {
  suspects x;
  CHECK_FALSE(x.on_end(flights({1}, 10)));
  SUBCASE("the same") { CHECK(x.on_end(flights({1}, 10)) == id(1)); }
  SUBCASE("one further") { CHECK(x.on_end(flights({1}, 11)) == id(1)); }
  SUBCASE("one before") { CHECK(x.on_end(flights({1}, 9)) == id(1)); }
  SUBCASE("two further: elsewhere, so it is tested again") {
    CHECK_FALSE(x.on_end(flights({1}, 12)));
    CHECK(x.leave_of(id(1)) == leave::in_test);
    CHECK(x.on_end(flights({1}, 12)) == id(1));
  }
  CHECK_FALSE(x.hunting());
  CHECK(x.leave_of(id(1)) == leave::with_others); // it is forgotten: whoever was told fails it
}

TEST_CASE("ends beside others convict nobody, however many") {
  suspects x;
  for (int i = 0; i < 50; ++i) CHECK_FALSE(x.on_end(flights({1, 2, 3})));
  CHECK(x.hunting());
}

TEST_CASE(
    "an end of a worker that served others as well makes these wait for the rest of the hunt") {
  suspects x;
  x.on_end(flights({1, 2}));
  x.on_end(flights({1, 2}));
  CHECK_FALSE(x.on_end(flights({1, 7})));
  CHECK(x.others_wait());
  CHECK(x.leave_of(id(7)) == leave::wait);
  CHECK(x.leave_of(id(1)) == leave::in_test);
  x.on_tokens(id(1), 3);
  CHECK(x.on_tokens(id(1), 11));
  CHECK(x.others_wait());
  CHECK(x.leave_of(id(2)) == leave::in_test);
  CHECK_FALSE(x.on_end(flights({2})));
  CHECK(x.on_end(flights({2})) == id(2));
  CHECK_FALSE(x.others_wait());
  CHECK(x.leave_of(id(7)) == leave::with_others);
}

TEST_CASE("the other half of a guilty group is not tested as a whole when the first one is clean") {
  suspects x;
  for (int i = 0; i < 2; ++i) x.on_end(flights({1, 2, 3, 4, 5, 6, 7, 8}));
  x.on_end(flights({1, 2, 3, 4})); // guilty: 1 2 | 3 4, and then 5 6 7 8
  for (auto r : {1, 2}) x.on_tokens(id(r), 0);
  for (auto r : {1, 2}) x.on_tokens(id(r), 8);
  CHECK(x.leave_of(id(3)) == leave::in_test);
  CHECK(x.leave_of(id(4)) == leave::wait);
}

TEST_CASE("whoever leaves before it is clean says nothing of the other half") {
  suspects x;
  for (int i = 0; i < 2; ++i) x.on_end(flights({1, 2, 3, 4, 5, 6, 7, 8}));
  x.on_end(flights({1, 2, 3, 4}));
  CHECK_FALSE(x.forget(id(1)));
  x.on_tokens(id(2), 0);
  CHECK(x.on_tokens(id(2), 8));
  CHECK(x.leave_of(id(3)) == leave::in_test);
  CHECK(x.leave_of(id(4)) == leave::in_test);
  CHECK_FALSE(x.forget(id(3)));
  CHECK(x.forget(id(4)));
  CHECK(x.leave_of(id(5)) == leave::in_test);
}

TEST_CASE("nobody waits for a suspect that stops, and its next end makes it one again") {
  suspects x;
  for (int i = 0; i < 2; ++i) x.on_end(flights({1, 2}));
  CHECK(x.excuse(id(1)));
  CHECK(x.leave_of(id(1)) == leave::with_others);
  CHECK(x.leave_of(id(2)) == leave::in_test);
  CHECK_FALSE(x.excuse(id(3)));
  CHECK(x.ends_of(id(3)) == 0);
  CHECK(x.excuse(id(2)));
  CHECK_FALSE(x.hunting());
  x.on_end(flights({1, 9}));
  CHECK(x.leave_of(id(1)) == leave::in_test);
  CHECK(x.leave_of(id(9)) == leave::with_others);
}

TEST_CASE("an end elsewhere leaves the test as it is") {
  suspects x;
  for (int i = 0; i < 2; ++i) x.on_end(flights({1, 2}));
  x.on_tokens(id(1), 3);
  CHECK_FALSE(x.on_end(flights({7, 8})));
  CHECK(x.leave_of(id(1)) == leave::in_test);
  CHECK(x.on_tokens(id(1), 11));
}

TEST_CASE("one poisonous request among n costs about log2(n) + 4 ends") {
  for (uint32_t n = 1; n <= 64; n *= 2)
    for (uint32_t poisoned = 0; poisoned < n; ++poisoned) {
      std::vector<world::served> requests(n, {40, std::nullopt});
      requests[poisoned].deadly = 5;
      world w{requests, 2, false, 1};
      uint32_t log = 0;
      while (1u << log < n) ++log;
      CHECK(w.run() <= log + 5);
    }
}

TEST_CASE("every poisoned request of any number is found, and all others end well") {
  const uint64_t seed = 20'251;
  MESSAGE("seed " << seed);
  std::mt19937_64 random{seed};
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 3'000; ++round) {
    const auto n = 1 + below(24);
    std::vector<world::served> requests(n);
    uint32_t poisoned = 0;
    for (auto& r : requests) {
      r.length = 1 + below(60);
      if (below(4) > 0) continue;
      r.deadly = below(r.length); // 0: its prompt
      ++poisoned;
    }
    CAPTURE(round);
    world w{requests, 1 + below(4), below(2) == 1, random()};
    const auto ends = w.run();
    uint32_t wrong = 0, failed = 0;
    for (const auto& r : w.requests()) {
      wrong += r.failed != r.deadly.has_value();
      failed += r.failed;
    }
    CHECK(wrong == 0);
    CHECK(failed == poisoned);
    CHECK((poisoned > 0 || ends == 0));
    CHECK_FALSE(w.found().hunting());
    CHECK_FALSE(w.found().others_wait());
  }
}
