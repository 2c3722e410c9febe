// A pool with parity while requests run (decision 23; reliability A6): what is lost of it is made
// again beside them, and what it has is enough to bring a shard back. Whatever happens, every
// client gets the tokens of an undisturbed run.
#include "tests/simulation/scenario.hpp"

#include "actors/protocol/kv.hpp"

namespace lamella::simulation {

namespace {

constexpr uint64_t seeds = 12;

/// Two shards, their parity and a spare; requests that run for some seconds.
class guarded {
public:
  explicit guarded(uint64_t seed, uint32_t shards = 2, uint32_t spares = 1)
      : guarded{seed, shape(shards, spares)} {}

  guarded(uint64_t seed, const cluster_shape& shape) : where{shape, mix(seed, 5)} {
    tests::splitmix dice{mix(seed, 6)};
    REQUIRE(where.run_until([&] { return where.server != nullptr; }, 60s));
    clients_.resize(6);
    for (auto& x : clients_) {
      for (auto n = 4 + dice.below(30); n > 0; --n)
        x.prompt.push_back(first_byte + static_cast<uint32_t>(dice.below(256)));
      x.max_tokens = 250;
      x.choices = dice.below(3) == 0 ? 2 : 1;
      x.stream = true;
      // Of a choice that ends while there is no pipeline the allocator keeps the slots for a while,
      // without parity.
      x.seed = endless_seed + dice.below(1'000'000);
      begin(where, x);
    }
    const auto tokens = 60 + dice.below(120); // of all together
    REQUIRE(where.run_until([&] { return told() > tokens; }, 30s));
    parity_ = metric("lamella_requests_recovered_total{method=\"parity\"}");
    recompute_ = metric("lamella_requests_recovered_total{method=\"recompute\"}");
  }

  /// Whoever has that part is gone; it comes back as the spare.
  void lose(const std::string& part, std::chrono::nanoseconds away = 100ms) {
    const auto epochs = where.epochs.size();
    box(part).crash(away);
    REQUIRE(where.run_until([&] { return where.epochs.size() > epochs; }, 10s));
  }
  /// The pool has another number of shards.
  void scale(uint32_t shards) {
    const auto epochs = where.epochs.size();
    where.scale("attention", shards);
    REQUIRE(where.run_until([&] { return where.epochs.size() > epochs; }, 30s));
  }
  worker_box& box(const std::string& part) {
    const auto seat = where.seat_with(part);
    for (auto& x : where.workers)
      if (x->name() == seat) return *x;
    FAIL("nobody has that part: " << part);
    throw 0;
  }

  /// Until all that is in use has its parity; whether that was while requests ran.
  bool is_whole() {
    return where.run_until([&] { return usage().parity == usage().used.front(); }, 20s) && !over();
  }
  actors::kv_usage usage() {
    const auto answer = where.ask<actors::kv_usage>(where.server->allocator, actors::status_atom_v);
    where.run_until([&] { return answer->came; }, 100ms);
    return answer->came && !answer->value.used.empty() ? answer->value
                                                       : actors::kv_usage{{1}, {1}, 0};
  }

  bool over() const {
    return std::all_of(clients_.begin(), clients_.end(), [](auto& x) { return x.over(); });
  }
  size_t told() const {
    size_t sum = 0;
    for (const auto& x : clients_) sum += x.exchange->text().size();
    return sum;
  }

  void end_well() {
    CHECK(where.run_until([&] { return over(); }, 599s));
    for (const auto& x : clients_) CHECK(check(x) == "");
    CHECK(comes_to_rest(where) == "");
    CHECK(where.links.strangers() == 0);
  }
  double by_parity() const {
    return metric("lamella_requests_recovered_total{method=\"parity\"}") - parity_;
  }
  double computed() const {
    return metric("lamella_requests_recovered_total{method=\"recompute\"}") - recompute_;
  }
  double metric(const std::string& series) const {
    return simulation::metric(*where.server->metrics, series);
  }

  /// Whether the series is above `value` within that time. Looked at every millisecond and not
  /// after every event: a page of all metrics costs more than most of those.
  bool exceeds(const std::string& series, double value, std::chrono::nanoseconds end) {
    for (const auto last = where.time.now() + end; metric(series) <= value;) {
      if (where.time.now() >= last) return false;
      where.run_until([] { return false; }, 1ms);
    }
    return true;
  }

  /// A spare, and cells of two members each, of which these have parity.
  static cluster_shape cells(std::vector<bool> with_parity) {
    auto s = shape(0, 1);
    s.parity = false;
    s.cells.assign(with_parity.size(), 2);
    s.shards = 2 * static_cast<uint32_t>(with_parity.size());
    s.cells_with_parity = std::move(with_parity);
    s.slots = 2000;
    return s;
  }

  cluster where;

private:
  static cluster_shape shape(uint32_t shards, uint32_t spares) {
    cluster_shape s;
    s.shards = shards;
    s.spares = spares;
    s.parity = true;
    s.slots = 4000;
    s.max_batch = 8;
    s.slowest_step = 4ms; // 250 tokens take some seconds
    return s;
  }

  std::vector<client> clients_;
  double parity_ = 0, recompute_ = 0;
};

} // namespace

TEST_CASE("A2 L-M26 parity, crash: decoding goes on at once, and the parity is made beside it") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed};
    x.lose("parity");
    const auto tokens = x.told();
    const auto then = x.usage();
    CHECK(then.parity < then.used.front());
    REQUIRE(x.is_whole());
    CHECK(x.told() > tokens);
    // A shard that is lost now is all there.
    x.lose("shard 1");
    x.end_well();
    CHECK(x.by_parity() > 0);
    CHECK(x.computed() == 0);
  }
}

TEST_CASE(
    "L-M03 L-M26 of a pool that was scaled in, a lost parity is made, and brings a shard back") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed};
    const auto wrong = x.metric("lamella_parity_mismatches_total");
    x.scale(1);
    REQUIRE(x.is_whole());
    x.lose("parity");
    const auto then = x.usage();
    CHECK(then.parity < then.used.front());
    REQUIRE(x.is_whole());
    x.lose("shard 0");
    x.end_well();
    CHECK(x.by_parity() > 0);
    CHECK(x.computed() == 0);
    CHECK(x.metric("lamella_parity_mismatches_total") == wrong);
  }
}

TEST_CASE("L-M03 L-M26 of a pool that was scaled out and lacks its parity, a shard is recomputed") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed, 1, 0};
    x.scale(2);
    REQUIRE(x.is_whole());
    x.lose("parity", 10s);
    x.lose("shard 1");
    x.end_well();
    CHECK(x.by_parity() == 0);
    CHECK(x.computed() > 0);
  }
}

TEST_CASE("L-M23 L-M26 of a cell with parity a shard is reconstructed, of one without recomputed") {
  double by_parity = 0, computed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed, guarded::cells({false, true})};
    REQUIRE(x.usage().used.size() == 2);
    CHECK(x.usage().parity <= x.usage().used[1]);
    const bool guards = seed % 2 == 0;
    x.lose(guards ? "shard 3" : "shard 1");
    x.end_well();
    CHECK((guards ? x.computed() : x.by_parity()) == 0);
    by_parity += x.by_parity();
    computed += x.computed();
  }
  CHECK(by_parity > 0);
  CHECK(computed > 0);
}

TEST_CASE("L-M23 L-M26 shards lost at once in two cells with parity are both reconstructed") {
  double by_parity = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed, guarded::cells({true, true})};
    x.box("shard 0").crash(100ms);
    x.lose("shard 3");
    x.end_well();
    CHECK(x.computed() == 0);
    by_parity += x.by_parity();
  }
  CHECK(by_parity > 0);
}

TEST_CASE("L-M26 a shard lost before the parity is made: who had none is computed again") {
  double computed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed};
    x.lose("parity");
    x.lose("shard 0");
    x.end_well();
    computed += x.computed();
  }
  CHECK(computed > 0);
}

TEST_CASE("A5 a rebuild that another loss interrupts goes on where it was, and no token differs") {
  uint32_t interrupted = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed};
    REQUIRE(x.is_whole());
    const auto bytes = [&] {
      return x.metric("lamella_kv_rebuild_bytes_total{method=\"parity\"}");
    };
    const auto before = bytes();
    const auto used = x.usage().used.front();
    const auto epochs = x.where.epochs.size();
    x.box("shard 0").crash(5s); // the spare takes its part
    REQUIRE(x.where.run_until([&] { return x.where.slots_made() > used / 2; }, 10s));
    const bool early = x.where.epochs.size() == epochs; // it does not serve yet
    interrupted += early ? 1 : 0;
    x.box("replica 0").crash(100ms);
    REQUIRE(x.where.run_until([&] { return x.where.epochs.size() > epochs; }, 20s));
    x.end_well();
    // Each slot was made once, but for those of the copy that was under way.
    const auto made = (bytes() - before) / x.where.slot_bytes();
    CHECK(made >= used / 2);
    CHECK(made < 1.3 * used);
    CHECK(x.by_parity() > 0);
  }
  CHECK(interrupted >= seeds / 2);
}

TEST_CASE("A6 scrubber: a parity that forgot all is found and made again, and no token differs") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    guarded x{seed};
    const auto before = x.metric("lamella_parity_mismatches_total");
    x.box("parity").wipe();
    REQUIRE(x.exceeds("lamella_parity_mismatches_total", before, 10s));
    x.where.run_until([] { return false; }, 2s);
    REQUIRE_FALSE(x.over());
    x.end_well();
  }
}

TEST_CASE("A6 L-M25 L-M26 seeds 1 to 400 of pools with parity end well") {
  uint32_t epochs = 0, hits = 0;
  double made = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    scenario one{seed, {true, false}};
    const auto came = one.run();
    epochs += came.epochs;
    hits += came.hits;
    for (const auto& why : came.wrong) FAIL_CHECK("seed " << seed << ": " << why);
    if (seed == 400 && one.where().server)
      made = metric(*one.where().server->metrics, "lamella_parity_rebuilt_slots_total");
  }
  CHECK(hits > 400);
  CHECK(epochs > 800);
  CHECK(made > 100); // of the last seed: they reach what they are for
}

} // namespace lamella::simulation
