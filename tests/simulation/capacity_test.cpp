// What is lost and does not come back for long, or ever: who was accepted waits, who comes is told.
#include "tests/simulation/workload.hpp"

namespace lamella::simulation {

namespace {

/// One request at work in a cluster without a spare.
struct bereft {
  cluster where;
  client one;

  explicit bereft(uint64_t seed) : where{shape(), seed} {
    REQUIRE(where.run_until([&] { return where.server != nullptr; }, 60s));
    one.prompt = {70, 71, 72, 73};
    one.max_tokens = 60;
    one.stream = true;
    begin(where, one);
    REQUIRE(where.run_until([&] { return one.exchange->text().size() > 3; }, 10s));
  }

  static cluster_shape shape() {
    cluster_shape s;
    s.spares = 0;
    return s;
  }
  /// A shard is gone for so long.
  void lose(duration how_long) {
    for (auto& x : where.workers)
      if (x->name() == "attention/0") x->crash(how_long);
  }
  client ask() {
    client x;
    x.prompt = {80, 81};
    x.max_tokens = 5;
    begin(where, x);
    where.run_until([&] { return x.over(); }, 100ms);
    return x;
  }
  void pass(duration x) {
    where.run_until([] { return false; }, x);
  }
  actors::recovery_watch::view pauses() { return where.server->pauses->look(where.time.now()); }
  double metric(const std::string& series) {
    return simulation::metric(*where.server->metrics, series);
  }
};

} // namespace

TEST_CASE("F4 while what was lost is not back, accepted requests wait with pings, and new ones get "
          "503 once that takes too long") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    bereft x{seed};
    const auto alarms = x.metric("lamella_recovery_alarms_total");
    CHECK(x.pauses().recovering == 0);
    x.lose(40s);
    x.pass(1s);
    CHECK(x.pauses().recovering == 1);
    CHECK(x.pauses().down);
    CHECK_FALSE(x.pauses().too_long);
    const auto early = x.ask();
    CHECK_FALSE(early.over()); // a pause like others: it waits
    x.pass(4s);
    CHECK(x.pauses().too_long);
    CHECK(x.metric("lamella_recovery_alarms_total") == alarms + 1);
    CHECK(x.metric("lamella_recovery_alarm") == 1);
    CHECK(x.metric("lamella_requests_recovering") == 1);
    const auto late = x.ask();
    CHECK(late.exchange->status == 503);
    CHECK(late.exchange->body.find("no_capacity") != std::string::npos);
    CHECK(late.exchange->headers.get("retry-after") == "5");
    x.pass(25s);
    CHECK(x.one.exchange->streamed.find(": ping") != std::string::npos);
    REQUIRE(x.where.run_until([&] { return x.one.over() && early.over(); }, 60s));
    CHECK(check(x.one) == "");
    CHECK(check(early) == "");
    x.pass(1s);
    CHECK(x.pauses().recovering == 0);
    CHECK(x.metric("lamella_recovery_alarm") == 0);
    CHECK(x.metric("lamella_requests_recovering") == 0);
    CHECK(check(x.ask()) == "");
  }
}

TEST_CASE("F4 what never comes back ends who waits for it at the deadline, with the reason") {
  bereft x{5};
  x.lose(2000s);
  x.pass(1s);
  auto never = x.ask();
  CHECK_FALSE(never.over());
  x.pass(590s);
  CHECK_FALSE(x.one.over());
  REQUIRE(x.where.run_until([&] { return x.one.over() && never.over(); }, 20s));
  CHECK(x.one.exchange->streamed.find("recovery_failed") != std::string::npos);
  CHECK(never.exchange->status == 503);
  CHECK(never.exchange->body.find("no_capacity") != std::string::npos);
  CHECK(x.pauses().recovering == 0);
}

} // namespace lamella::simulation
