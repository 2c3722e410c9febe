// Control is healthy, the data plane is not (reliability A1): cables that are pulled, muted or
// loose beside control links that live. Who is at fault loses its part within a second or so,
// streams go on, and every client gets the tokens of an undisturbed run.
#include "tests/simulation/rest.hpp"
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

constexpr uint64_t seeds = 4;

/// Streams that run for some seconds, and how long each stood still at most.
class streams {
public:
  streams(const cluster_shape& shape, uint64_t seed) : where{shape, mix(seed, 7)} {
    tests::splitmix dice{mix(seed, 8)};
    REQUIRE(where.run_until([&] { return where.server != nullptr; }, 60s));
    clients_.resize(4);
    seen_.resize(clients_.size());
    for (auto& x : clients_) {
      for (auto n = 4 + dice.below(30); n > 0; --n)
        x.prompt.push_back(first_byte + static_cast<uint32_t>(dice.below(256)));
      x.max_tokens = 250;
      x.stream = true;
      x.seed = endless_seed + dice.below(1'000'000);
      begin(where, x);
    }
    go_on(300ms);
    longest_ = {};
  }

  worker_box& box(const std::string& part) {
    const auto seat = where.seat_with(part);
    for (auto& x : where.workers)
      if (x->name() == seat) return *x;
    FAIL("nobody has that part: " << part);
    throw 0;
  }

  /// For so long, or until all have their answer.
  void go_on(duration how_long) {
    for (const auto end = where.time.now() + how_long; where.time.now() < end && !over();) {
      where.run_until([] { return false; }, 5ms);
      for (size_t i = 0; i < clients_.size(); ++i) {
        const auto& x = *clients_[i].exchange;
        auto& [bytes, since] = seen_[i];
        if (x.answers == 0 && bytes == x.streamed.size() && bytes > 0)
          longest_ = std::max(longest_, where.time.now() - since);
        if (bytes != x.streamed.size()) since = where.time.now();
        bytes = x.streamed.size();
      }
    }
  }
  bool over() const {
    return std::all_of(clients_.begin(), clients_.end(), [](auto& x) { return x.over(); });
  }
  duration longest() const { return longest_; }

  void end_well() {
    go_on(599s);
    for (const auto& x : clients_) CHECK(check(x) == "");
    CHECK(comes_to_rest(where) == "");
    CHECK(where.links.strangers() == 0);
    CHECK(where.seats.errors.empty());
    CHECK_FALSE(where.given_up);
  }

  cluster where;

private:
  std::vector<client> clients_;
  std::vector<std::pair<size_t, time_point>> seen_; ///< bytes, and since when so many
  duration longest_{};
};

cluster_shape guarded() {
  cluster_shape s; // two replicas, two shards by head, their parity, a spare
  s.parity = true;
  s.slots = 2000;
  s.max_batch = 8;
  s.slowest_step = 4ms; // 250 tokens take some seconds
  return s;
}

/// `trouble(streams&)` for every seed, then how long streams stood still and how many epochs it
/// took.
template <class Trouble>
void each_seed(const cluster_shape& shape, Trouble trouble, duration pause, size_t epochs) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    streams x{shape, seed};
    const auto before = x.where.epochs.size();
    trouble(x);
    x.end_well();
    CHECK(x.longest() < pause);
    CHECK(x.where.epochs.size() - before <= epochs);
  }
}

} // namespace

TEST_CASE("A1 a shard's data cable is pulled for a minute: the spare takes its part, with its KV") {
  for (const bool one_way : {false, true})
    each_seed(
        guarded(), [=](streams& x) { x.box("shard 1").pull_data_cable(60s, one_way); }, 2s, 3);
}

TEST_CASE("A1 a replica's data cable is pulled for a minute: its streams go to the other one") {
  for (const bool one_way : {false, true})
    each_seed(
        guarded(), [=](streams& x) { x.box("replica 0").pull_data_cable(60s, one_way); }, 2s, 4);
}

TEST_CASE("A1 the network between one replica and one shard is lost: it is routed around") {
  each_seed(
      guarded(), [](streams& x) { x.box("replica 1").part_from(x.box("shard 0"), 60s); }, 2s, 4);
}

TEST_CASE("A1 a plug that comes and goes: its worker rests, and the others go on") {
  each_seed(
      guarded(),
      [](streams& x) {
        auto& who = x.box("shard 0");
        for (auto when = 0s; when < 40s; when += 2s)
          x.where.time.in(when, [&who] { who.pull_data_cable(1s); });
      },
      2s, 8);
}

TEST_CASE("A1 A2 without a spare, the shards that are left serve until the cable is in again") {
  auto shape = guarded();
  shape.spares = 0;
  shape.parity = false;
  shape.slots = 4000; // half of them are enough for all
  shape.least_slots = 500;
  each_seed(
      shape, [](streams& x) { x.box("shard 1").pull_data_cable(60s); }, 4s, 4);
}

TEST_CASE("A1 where one shard has no room, streams stand still until the cable is in again") {
  auto shape = guarded();
  shape.spares = 0;
  shape.parity = false;
  each_seed(
      shape,
      [](streams& x) {
        x.box("shard 1").pull_data_cable(10s);
        const auto before = x.where.epochs.size();
        x.go_on(9s);
        CHECK(x.where.epochs.size() == before); // nothing is tried in vain
      },
      12s, 3);
}

} // namespace lamella::simulation
