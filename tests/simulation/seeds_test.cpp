// One seed is one small cluster, its clients and its troubles, on virtual time and in one thread.
// It ends well when every client has got the tokens of an undisturbed run, exactly once, and all
// has come to rest. A seed that fails prints itself and how to run it alone.
#include "tests/simulation/scenario.hpp"

#include <cstdlib>

namespace lamella::simulation {

namespace {

const char* asked(const char* variable) { return std::getenv(variable); }

uint64_t number_in(const char* text, uint64_t otherwise) {
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

double metric(const cluster& c, const std::string& series) {
  return simulation::metric(*c.server->metrics, series);
}

struct totals {
  uint64_t events = 0, frames = 0, epochs = 0, troubles = 0, hits = 0, odd = 0;
  double preempted = 0, recovered = 0, found = 0, overflowed = 0, spread = 0, stood_back = 0;
};

std::string name_of(kind what) {
  return std::string{what.parity ? " with parity" : ""} + (what.odd ? " and oddities" : "")
         + (what.here ? " in one process" : "") + (what.gray ? " and gray failures" : "")
         + (what.scales ? " and scaling" : "") + (what.rotates ? " and rotation" : "")
         + (what.chooses ? " and chosen pipelines" : "") + (what.mixes ? " and mixed launches" : "")
         + (what.cells ? " and cells" : "") + (what.cuts ? " cut by heads and by requests" : "")
         + (what.comes ? " and new cells" : "") + (what.fewer ? " and fewer shards" : "")
         + (what.tight ? " and little memory" : "");
}

totals run_seeds(uint64_t first, uint64_t count, kind what = {}) {
  totals all;
  for (auto seed = first; seed < first + count; ++seed) {
    scenario one{seed, what};
    if (asked("LAMELLA_SEED") != nullptr && count == 1) spdlog::set_level(spdlog::level::info);
    const auto came = one.run();
    all.events += came.events;
    all.frames += came.frames;
    all.epochs += came.epochs;
    all.troubles += came.troubles;
    all.hits += came.hits;
    all.odd += came.odd;
    for (const auto& why : came.wrong)
      FAIL_CHECK("seed " << seed << name_of(what) << ": " << why << "; tests/run --seed " << seed
                         << " runs it alone");
    if (seed + 1 == first + count && one.where().server) {
      all.preempted = metric(one.where(), "vllm:num_preemptions_total");
      all.recovered = metric(one.where(), "lamella_requests_recovered_total");
      all.found = metric(one.where(), "vllm:prefix_cache_hits_total");
      all.overflowed = metric(one.where(), "lamella_prompts_overflowed_total");
      all.spread = metric(one.where(), "lamella_sequences_overflowed_total");
      all.stood_back = metric(one.where(), "lamella_sequences_stood_back_total");
    }
  }
  MESSAGE(count << " seeds from " << first << name_of(what) << ": " << all.troubles << " troubles, "
                << all.hits << " of them while a request ran; " << all.epochs << " epochs, "
                << all.recovered << " requests recovered, " << all.preempted << " preempted, "
                << all.found << " prompt tokens found, " << all.overflowed
                << " prompts overflowed, " << all.spread << " sequences did, " << all.stood_back
                << " stood back; " << all.events << " events, " << all.frames << " frames, "
                << all.odd << " odd turns");
  return all;
}

/// Also that the seeds reach what they are for.
void run_part(uint64_t first) {
  constexpr uint64_t count = 500;
  const auto all = run_seeds(first, count);
  CHECK(all.hits > count);
  CHECK(all.epochs > 2 * count);
  CHECK(all.recovered > count / 2);
  CHECK(all.preempted > count / 100); // what begins alike takes less room
  CHECK(all.found > 2 * count);
  CHECK(all.overflowed > count / 50);
}

} // namespace

TEST_CASE("D3 V-M12 V-M14 V-M15 L-M25 L-M26 seeds 1 to 500 end well") { run_part(1); }
TEST_CASE("D3 V-M12 V-M14 V-M15 L-M25 L-M26 seeds 501 to 1000 end well") { run_part(501); }
TEST_CASE("D3 V-M12 V-M14 V-M15 L-M25 L-M26 seeds 1001 to 1500 end well") { run_part(1001); }
TEST_CASE("D3 V-M12 V-M14 V-M15 L-M25 L-M26 seeds 1501 to 2000 end well") { run_part(1501); }

TEST_CASE("D3 seeds in which places of the product act oddly end well") {
  for (const bool parity : {false, true}) {
    const auto all = run_seeds(1, 250, {parity, true});
    CHECK(all.hits > 250);
    CHECK(all.odd > 250);
  }
}

TEST_CASE("D3 L-M25 seeds in which all seats are of the control process end well") {
  for (const bool odd : {false, true}) {
    const auto all = run_seeds(1, 300, {.odd = odd, .here = true});
    CHECK(all.hits > 300);
    CHECK(all.epochs > 600);
  }
}

TEST_CASE("A1 seeds in which hosts do not hear each other beside living control links end well") {
  for (const bool parity : {false, true}) {
    const auto all = run_seeds(1, 200, {.parity = parity, .gray = true});
    CHECK(all.hits > 200);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE("L-M03 L-M25 seeds in which pools change their sizes end well") {
  for (const kind what :
       {kind{.scales = true}, kind{.odd = true, .scales = true},
        kind{.parity = true, .scales = true}, kind{.here = true, .scales = true}}) {
    const auto all = run_seeds(1, 500, what);
    CHECK(all.hits > 500);
    CHECK(all.epochs > 1000);
  }
}

TEST_CASE("A2 L-M26 seeds in which pools serve with fewer shards after a loss end well") {
  for (const kind what :
       {kind{.fewer = true}, kind{.parity = true, .fewer = true}, kind{.gray = true, .fewer = true},
        kind{.odd = true, .scales = true, .fewer = true},
        kind{.scales = true, .cells = true, .fewer = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE(
    "L-M03 L-M26 seeds in which pools change their sizes and hosts hold their KV once end well") {
  for (const kind what :
       {kind{.scales = true, .tight = true}, kind{.odd = true, .scales = true, .tight = true},
        kind{.here = true, .scales = true, .tight = true},
        kind{.parity = true, .odd = true, .scales = true, .cells = true, .tight = true},
        kind{.scales = true, .cells = true, .cuts = true, .tight = true}}) {
    const auto all = run_seeds(1, 100, what);
    CHECK(all.hits > 100);
    CHECK(all.epochs > 150);
  }
}

TEST_CASE("L-M17 L-M21 L-M25 seeds in which batches rotate over the replicas end well") {
  for (const kind what :
       {kind{.rotates = true}, kind{.odd = true, .rotates = true},
        kind{.parity = true, .gray = true, .rotates = true}, kind{.here = true, .rotates = true},
        kind{.scales = true, .rotates = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE("V-M17 L-M17 seeds in which the pipeline of each epoch is chosen end well") {
  for (const kind what : {kind{.chooses = true}, kind{.odd = true, .chooses = true},
                          kind{.odd = true, .scales = true, .chooses = true, .mixes = true},
                          kind{.odd = true, .here = true, .chooses = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE("S-M02 S-M12 V-M16 seeds in which prompts share the launches of batches end well") {
  for (const kind what :
       {kind{.mixes = true}, kind{.odd = true, .mixes = true}, kind{.parity = true, .mixes = true},
        kind{.gray = true, .rotates = true, .mixes = true}, kind{.here = true, .mixes = true},
        kind{.scales = true, .cells = true, .mixes = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
    CHECK(all.stood_back > 10);
    CHECK(all.spread > 10);
  }
}

TEST_CASE("L-M03 L-M23 seeds in which the attention pool is several cells end well") {
  for (const kind what :
       {kind{.cells = true}, kind{.odd = true, .scales = true, .cells = true},
        kind{.here = true, .scales = true, .cells = true},
        kind{.scales = true, .rotates = true, .cells = true}, kind{.parity = true, .cells = true},
        kind{.parity = true, .odd = true, .scales = true, .cells = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE("L-M03 L-M23 seeds in which new cells come end well") {
  for (const kind what :
       {kind{.scales = true, .comes = true}, kind{.parity = true, .scales = true, .comes = true},
        kind{.scales = true, .cells = true, .comes = true},
        kind{.odd = true, .scales = true, .cells = true, .cuts = true, .comes = true},
        kind{.here = true, .scales = true, .cells = true, .cuts = true, .comes = true},
        kind{.parity = true, .scales = true, .cells = true, .cuts = true, .comes = true},
        kind{.scales = true, .cells = true, .tight = true, .comes = true, .fewer = true}}) {
    const auto all = run_seeds(1, 200, what);
    CHECK(all.hits > 200);
    CHECK(all.epochs > 300);
  }
}

TEST_CASE("L-M23 L-M24 seeds in which cells are cut by heads and by requests end well") {
  for (const kind what :
       {kind{.cells = true, .cuts = true},
        kind{.odd = true, .scales = true, .cells = true, .cuts = true},
        kind{.here = true, .scales = true, .cells = true, .cuts = true},
        kind{.parity = true, .odd = true, .scales = true, .cells = true, .cuts = true},
        kind{.scales = true, .cells = true, .mixes = true, .cuts = true, .fewer = true}}) {
    const auto all = run_seeds(1, 250, what);
    CHECK(all.hits > 250);
    CHECK(all.epochs > 400);
  }
}

TEST_CASE("The seeds asked for end well"
          * doctest::skip(asked("LAMELLA_SEED") == nullptr && asked("LAMELLA_SEEDS") == nullptr)) {
  for (const kind what :
       {kind{},
        kind{true, false},
        kind{false, true},
        kind{true, true},
        kind{.gray = true},
        kind{.parity = true, .gray = true},
        kind{.here = true},
        kind{.odd = true, .here = true},
        kind{.scales = true},
        kind{.odd = true, .scales = true},
        kind{.parity = true, .scales = true},
        kind{.here = true, .scales = true},
        kind{.rotates = true},
        kind{.parity = true, .odd = true, .rotates = true},
        kind{.gray = true, .rotates = true},
        kind{.scales = true, .rotates = true},
        kind{.odd = true, .scales = true, .chooses = true},
        kind{.cells = true},
        kind{.scales = true, .cells = true},
        kind{.odd = true, .scales = true, .cells = true},
        kind{.here = true, .scales = true, .cells = true},
        kind{.parity = true, .cells = true},
        kind{.parity = true, .gray = true, .cells = true},
        kind{.parity = true, .odd = true, .scales = true, .cells = true},
        kind{.parity = true, .cells = true, .fewer = true},
        kind{.scales = true, .cells = true, .cuts = true},
        kind{.odd = true, .scales = true, .cells = true, .cuts = true},
        kind{.here = true, .scales = true, .cells = true, .cuts = true},
        kind{.parity = true, .scales = true, .cells = true, .cuts = true},
        kind{.scales = true, .cells = true, .cuts = true, .fewer = true},
        kind{.scales = true, .cells = true, .cuts = true, .comes = true},
        kind{.parity = true, .odd = true, .scales = true, .cells = true, .comes = true},
        kind{.scales = true, .tight = true},
        kind{.odd = true, .scales = true, .cells = true, .cuts = true, .tight = true},
        kind{.fewer = true},
        kind{.gray = true, .fewer = true},
        kind{.mixes = true},
        kind{.parity = true, .odd = true, .mixes = true},
        kind{.scales = true, .rotates = true, .mixes = true}})
    run_seeds(number_in(asked("LAMELLA_SEED"), 1), number_in(asked("LAMELLA_SEEDS"), 1), what);
}

TEST_CASE("L-M26 seeds of fresh slots taken for KV that was there, unheard of, end well") {
  for (uint64_t seed : {25476, 42995, 43453, 52074}) run_seeds(seed, 1);
}

TEST_CASE("L-M03 a seed in which two workers came back in each other's seats ends well") {
  run_seeds(900312, 1, {.scales = true});
}

TEST_CASE("V-M15 a seed in which those with KV waited behind those without ends well") {
  run_seeds(6002129, 1, {true, false});
}

TEST_CASE("The same seed is the same run, message by message") {
  std::set<uint64_t> logs;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const auto once = scenario{seed}.run(), again = scenario{seed}.run();
    CHECK(once.log == again.log);
    CHECK(once.events == again.events);
    logs.insert(once.log);
  }
  CHECK(logs.size() == 30);
}

TEST_CASE("The checker sees a cache that was wiped while it was in use") {
  cluster c{{}, 5};
  REQUIRE(c.run_until([&] { return c.server != nullptr; }, 10s));
  client one;
  one.prompt = {70, 71, 72, 73};
  one.max_tokens = 40;
  one.stream = true;
  begin(c, one);
  REQUIRE(c.run_until([&] { return one.exchange->text().size() > 3; }, 10s));
  SUBCASE("wiped") {
    for (auto& w : c.workers) w->wipe();
    REQUIRE(c.run_until([&] { return one.over(); }, 10s));
    CHECK(check(one).starts_with("choice 0"));
  }
  SUBCASE("left alone") {
    REQUIRE(c.run_until([&] { return one.over(); }, 10s));
    CHECK(check(one).empty());
  }
}

} // namespace lamella::simulation
