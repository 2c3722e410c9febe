// Pools that change their sizes while requests run, and nothing else happens: nobody may notice.
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

double metric(const cluster& c, const std::string& series) {
  return simulation::metric(*c.server->metrics, series);
}

/// Requests that run long enough for a change.
struct busy {
  cluster where;
  std::vector<client> clients{4};

  busy(const cluster_shape& shape, uint64_t seed) : where{shape, mix(seed, 7)} {
    tests::splitmix dice{mix(seed, 8)};
    REQUIRE(where.run_until([&] { return where.server != nullptr; }, 60s));
    before_ = metric(where, rows_metric); // all clusters share their numbers
    for (auto& x : clients) {
      for (auto n = 4 + dice.below(30); n > 0; --n)
        x.prompt.push_back(first_byte + static_cast<uint32_t>(dice.below(256)));
      x.max_tokens = 200;
      x.stream = true;
      x.seed = endless_seed + dice.below(1'000'000);
      begin(where, x);
    }
    REQUIRE(where.run_until([&] { return told() > 0; }, 30s));
  }
  size_t told() const {
    size_t sum = 0;
    for (const auto& x : clients) sum += x.exchange->text().size();
    return sum;
  }
  bool over() const {
    return std::ranges::all_of(clients, [](const auto& x) { return x.over(); });
  }
  /// Changes the pool, and waits until it has that size and another change may begin.
  void scale(const std::string& pool, uint32_t members) {
    const auto epochs = where.epochs.size();
    where.scale(pool, members);
    REQUIRE(where.run_until([&] { return where.epochs.size() > epochs; }, 30s));
    for (int i = 0; i < 500 && !where.changing().empty(); ++i)
      where.run_until([] { return false; }, 20ms);
    REQUIRE(where.changing() == "");
  }
  /// `troubles`: pipelines that ended before their time.
  void end_well(uint32_t troubles = 0) {
    CHECK(where.run_until([&] { return over(); }, 599s));
    for (const auto& x : clients) CHECK(check(x) == "");
    CHECK(where.troubles == troubles);
    CHECK(where.links.strangers() == 0);
  }
  /// Likewise, and no row was computed twice; an iteration that is launched ahead may compute one
  /// that nobody wants.
  void end_with_nothing_recomputed() {
    end_well();
    double wanted = 0;
    for (const auto& x : clients) wanted += static_cast<double>(x.prompt.size() + x.max_tokens - 1);
    CHECK(computed() <= wanted + 4.0 * static_cast<double>(clients.size()));
  }
  /// Likewise, each of so many changes having cost the KV of the prompts at least.
  void end_with_all_recomputed(uint32_t changes) {
    end_well(changes);
    double prompts = 0;
    for (const auto& x : clients) prompts += static_cast<double>(x.prompt.size());
    CHECK(computed() > (1 + changes) * prompts);
  }

private:
  double computed() { return metric(where, rows_metric) - before_; }

  static constexpr const char* rows_metric = "vllm:iteration_tokens_total_sum";
  double before_ = 0;
};

} // namespace

TEST_CASE("L-M03 L-M25 pools change their sizes under requests: same tokens, nothing recomputed") {
  for (const bool by_request : {false, true})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(by_request);
      CAPTURE(seed);
      cluster_shape shape;
      shape.replicas = shape.shards = 1;
      shape.spares = 0;
      shape.by_request = by_request;
      shape.slots = 2000;
      shape.slowest_step = 2ms; // they run for longer than the changes take
      busy x{shape, seed};
      x.scale("attention", 2);
      x.scale("model", 2);
      x.scale("attention", 1);
      x.scale("model", 1);
      x.end_with_nothing_recomputed();
    }
}

TEST_CASE("L-M03 L-M23 cells change their sizes under requests: same tokens, nothing recomputed") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    cluster_shape shape;
    shape.replicas = 1;
    shape.spares = 0;
    shape.cells = {1, 2, 0};
    shape.shards = 3;
    shape.slots = 2000;
    shape.more_in_next = 500;
    shape.slowest_step = 2ms; // they run for longer than the changes take
    busy x{shape, seed};
    x.scale("attention/c2", 2);
    x.scale("attention/c0", 0);
    x.scale("attention/c1", 1);
    x.scale("attention/c0", 2);
    x.end_with_nothing_recomputed();
  }
}

TEST_CASE(
    "L-M03 L-M26 hosts that hold the KV once: pools change their sizes, it is computed again, "
    "and the tokens are the same") {
  for (const bool here : {false, true})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(here);
      CAPTURE(seed);
      cluster_shape shape;
      shape.replicas = 1;
      shape.spares = 0;
      shape.cells = {1, 1};
      shape.shards = 2;
      shape.slots = 2000;
      shape.slowest_step = 2ms; // they run for longer than the changes take
      shape.here = here;
      shape.free_bytes = 1 << 20;
      busy x{shape, seed};
      x.scale("attention/c0", 2);
      x.scale("attention/c1", 2);
      x.scale("attention/c0", 1);
      x.end_with_all_recomputed(3);
    }
}

TEST_CASE("L-M23 L-M25 a seat whose number another cell had before is taken again after a loss") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    cluster_shape shape;
    shape.here = true;
    shape.replicas = 1;
    shape.spares = 0;
    shape.cells = {2, 1, 0};
    shape.cells_apart = 3;
    shape.shards = 3;
    shape.slots = 2000;
    shape.slowest_step = 2ms; // they run for longer than the changes take
    busy x{shape, seed};
    x.scale("attention/c0", 0);
    x.scale("attention/c2", 2);
    CHECK(x.where.troubles == 0);
    for (int kills = 0; kills < 3; ++kills) {
      const auto epochs = x.where.epochs.size();
      x.where.kill_part();
      CHECK(x.where.run_until([&] { return x.where.epochs.size() > epochs; }, 60s));
    }
    x.end_well(3);
  }
}

TEST_CASE("L-M23 a sequence that outgrows its cell is computed again in a larger one, and ends") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    cluster_shape shape;
    shape.replicas = 1;
    shape.spares = 0;
    shape.cells = {1, 1};
    shape.shards = 2;
    shape.slots = 150; // less than any of them needs
    shape.more_in_next = 850;
    busy x{shape, seed};
    x.end_well();
  }
}

} // namespace lamella::simulation
