// MEMBERSHIP on virtual time: workers whose control link lives and whose data plane does not.
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/watches.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

/// Two replicas, two shards and a spare.
struct world : membership_world {
  world()
      : membership_world{[](membership_config& m) {
          m.seats = {};
          m.seats.add(worker_role::model, 2);
          m.seats.add(worker_role::attention, 3);
          m.shape.replicas = 2;
          m.shape.prefill_seats = 0;
          m.shape.parity = {};
        }} {
    hears = [this](const std::string& by, const epoch_peer& peer) {
      const bool cut = unheard.contains(by) || unheard.contains(peer.seat)
                       || unheard.contains(by + " " + peer.seat);
      auto& since = failing[by + " " + peer.seat];
      const auto now = sched.clock().current_time;
      if (!cut) since.reset();
      if (cut && !since) since = now;
      const auto ms = since ? std::chrono::duration_cast<std::chrono::milliseconds>(now - *since)
                            : std::chrono::milliseconds{0};
      return watched_peer{peer.seat, peer.incarnation, !cut, static_cast<uint32_t>(ms.count())};
    };
    want_epoch();
  }
  void all_join() {
    for (const char* role : {"model", "model", "attention", "attention", "attention"}) {
      ++pid;
      all.push_back(join(role));
    }
    REQUIRE(opened.size() == 1);
    advance(1s, 10ms);
    REQUIRE(lost.empty());
  }
  /// So long it takes until somebody more is lost.
  caf::timespan until_lost() { return until_more(lost, 3s); }
  /// So long it takes until a better epoch is possible.
  caf::timespan until_due(caf::timespan limit = 3s) { return until_more(due, limit); }
  template <class List> caf::timespan until_more(const List& list, caf::timespan limit) {
    const auto before = list.size();
    caf::timespan took{0};
    for (; list.size() == before && took < limit; took += 10ms) advance(10ms, 10ms);
    return took;
  }
  size_t orders(size_t who) const { return all[who].book->opened.size(); }

  std::set<std::string> unheard; ///< seats, or pairs of two
  std::map<std::string, std::optional<caf::actor_clock::time_point>> failing;
  std::vector<process> all; ///< model/0, model/1, attention/0, attention/1, attention/2
};

} // namespace

TEST_CASE_FIXTURE(world, "A1 a shard that nobody hears is fenced, and the spare takes its part") {
  all_join();
  unheard = {"attention/1"};
  CHECK(until_lost() <= 900ms);
  CHECK(says(lost[0].second, "attention/1 fenced: no data plane connection"));
  CHECK(says(lost[0].second, "model/0"));
  want_epoch();
  REQUIRE(opened.size() == 2);
  CHECK(orders(3) == 1); // it is left out
  CHECK(orders(4) == 1);
  CHECK(all[3].book->left.empty()); // and lives
  CHECK(opened[1].empty == std::vector<uint32_t>{1});
  advance(10s, 50ms);
  CHECK(lost.size() == 1);
}

TEST_CASE_FIXTURE(world, "A1 a replica that nobody hears is fenced, and comes back when all do") {
  all_join();
  unheard = {"model/0"};
  CHECK(until_lost() <= 900ms);
  CHECK(says(lost[0].second, "model/0 fenced"));
  want_epoch();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].replicas.size() == 1);
  unheard.clear();
  CHECK(until_due() >= 500ms); // it rests
  CHECK(says(due[0].second, "model/0 can be used"));
  want_next();
  CHECK(opened.back().replicas.size() == 2);
}

TEST_CASE_FIXTURE(world, "A1 a plug that does not sit right costs fewer epochs each time") {
  all_join();
  caf::timespan rested{0};
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    unheard = {"model/1"};
    CHECK(until_lost() <= 900ms);
    want_epoch();
    unheard.clear();
    const auto rest = until_due(60s);
    CHECK(rest > rested);
    rested = rest;
    want_next();
    settled();
  }
  CHECK(rested > 4s);
}

TEST_CASE_FIXTURE(world, "A1 of one pair it is the replica that goes") {
  all_join();
  unheard = {"model/1 attention/0"};
  CHECK(until_lost() <= 900ms);
  CHECK(says(lost[0].second, "model/1 fenced"));
}

TEST_CASE_FIXTURE(world, "A1 a replica whose links are torn again and again is fenced, and rests") {
  all_join();
  all[2].book->torn["model/1"] = 3; // told by shards
  CHECK(until_lost() == 3s);        // of one pair, and few
  all[3].book->torn["model/1"] = 2;
  CHECK(until_lost() <= 300ms);
  CHECK(says(lost[0].second, "model/1 fenced: frames that fail their checks"));
  want_epoch();
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].replicas.size() == 1);
  CHECK(until_due(60s) >= 5s); // until it was long ago
  CHECK(says(due[0].second, "model/1 can be used"));
}

TEST_CASE_FIXTURE(world,
                  "A1 a shard whose links are torn keeps its part where that would cost KV") {
  all_join();
  all[0].book->torn["attention/1"] = all[1].book->torn["attention/1"] = 4;
  CHECK(until_lost() == 3s);
}

TEST_CASE_FIXTURE(world, "A1 who joins proves its data plane before it gets a part") {
  unheard = {"model/1", "attention/0"};
  for (const char* role : {"model", "model", "attention", "attention", "attention"}) {
    ++pid;
    all.push_back(join(role));
  }
  CHECK(opened.empty());
  advance(2s, 10ms);
  CHECK(ready <= 3);
  CHECK(opened.empty()); // the first one waits for everybody
  CHECK(all[1].book->opened.empty());
  unheard.clear();
  advance(1s, 10ms);
  REQUIRE(opened.size() == 1);
  advance(5s, 10ms);
  CHECK(ready == 5);
}

TEST_CASE_FIXTURE(world, "A1 without a spare a shard keeps its KV, and goes on when it is heard") {
  all_join();
  end(all[4].worker);
  CHECK(lost.empty());
  unheard = {"attention/1"};
  CHECK(until_lost() <= 900ms);
  want_epoch();
  advance(10s, 50ms);
  CHECK(opened.size() == 1); // nothing is tried in vain
  unheard.clear();
  advance(300ms, 10ms);
  REQUIRE(opened.size() == 2);
  CHECK(opened[1].empty.empty());
  CHECK(all[3].book->left.empty());
}

TEST_CASE_FIXTURE(world, "A1 who is not heard for long is sent away: another process may be") {
  all_join();
  unheard = {"model/1"};
  until_lost();
  want_epoch();
  advance(25s, 100ms);
  CHECK(all[1].book->left.size() == 1);
  CHECK(all[3].book->left.empty());
  ++pid;
  auto again = join("model");
  advance(3s, 100ms);
  CHECK(again.book->opened.empty());
  unheard.clear();
  advance(2s, 10ms);
  want_epoch();
  CHECK(again.book->opened.size() == 1);
}

} // namespace lamella::actors::test
