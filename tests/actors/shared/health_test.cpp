// What a start waits for: woken, not found at the next look. A wake that is lost would last longer
// than a test may. And what probes are told.
#include "actors/shared/health.hpp"

#include <doctest/doctest.h>

#include <future>

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE("Who waits for the first beat is woken by it, and not before") {
  pulse beats;
  CHECK_FALSE(beats.wait_first(0ms));
  auto waits = std::async(std::launch::async, [&] { return beats.wait_first(1h); });
  beats.beat(std::chrono::steady_clock::now());
  CHECK(waits.get());
  CHECK(beats.count() == 1);
  beats.beat(std::chrono::steady_clock::now());
  CHECK(beats.wait_first(0ms));
}

TEST_CASE("Who waits for the gateway is woken when it has a pipeline, and not before") {
  health_board board{10s};
  CHECK_FALSE(board.wait_served(0ms));
  auto waits = std::async(std::launch::async, [&] { return board.wait_served(1h); });
  board.set_served();
  CHECK(waits.get());
  CHECK(board.wait_served(0ms));
}

TEST_CASE("the progress of loading has seconds only where somebody knows them") {
  health_board board{10s};
  const auto progress = [&] {
    const auto body = board.ask(health_board::probe::ready, std::chrono::steady_clock::now()).body;
    const auto from = body.find("\"progress\":");
    return body.substr(from, body.find('}', from) + 1 - from);
  };
  CHECK(progress() == R"("progress":{"phase":"discover","ratio":0.000,"eta_s":null})");
  board.set_progress("weights", 0.25, 3.0);
  CHECK(progress() == R"("progress":{"phase":"weights","ratio":0.250,"eta_s":3.0})");
  board.set_progress("join", 0.5, std::nullopt);
  CHECK(progress() == R"("progress":{"phase":"join","ratio":0.500,"eta_s":null})");
}

TEST_CASE("/ready: a service that waits for a fenced worker names it") {
  health_board board{10s};
  const auto body = [&] {
    return board.ask(health_board::probe::ready, std::chrono::steady_clock::now()).body;
  };
  board.set_missing("model/0");
  board.set_fenced("attention/0");
  CHECK(body().find("loaded, waiting for workers: model/0, fenced: attention/0")
        != std::string::npos);
  board.set_missing("");
  CHECK(body().find("loaded, fenced: attention/0") != std::string::npos);
  board.set_fenced("");
  CHECK(body().find("fenced") == std::string::npos);
}

TEST_CASE("/ready: 200 as long as each role can serve, degraded where a worker is lost, else 503") {
  using probe = health_board::probe;
  using phase = health_board::phase;
  const auto begin = std::chrono::steady_clock::now();
  health_board board{5s};
  const auto told = [&](probe kind, std::chrono::milliseconds later = 0ms) {
    const auto x = board.ask(kind, begin + later);
    const auto from = x.body.find("\"status\":\"") + 10;
    return std::to_string(x.status) + " " + x.body.substr(from, x.body.find('"', from) - from);
  };
  const auto roles = [&](uint32_t up, uint32_t spares_up, bool serves) {
    board.set_roles({{"model", 2, 2, 0, 0, true}, {"attention", 3, up, 1, spares_up, serves}});
  };
  roles(3, 1, true);
  CHECK(told(probe::ready) == "503 loading");
  CHECK(told(probe::live) == "200 ok");
  board.enter(phase::serving);
  board.beats.beat(begin);
  CHECK(told(probe::ready) == "200 ok");
  CHECK(told(probe::ready, 4999ms) == "200 ok");
  CHECK(told(probe::ready, 5001ms) == "503 unavailable");
  CHECK(told(probe::health, 5001ms) == "503 unavailable");
  CHECK(told(probe::live, 5001ms) == "200 ok");
  for (const auto where : {phase::serving, phase::rebuilding}) {
    board.enter(where);
    roles(3, 0, true); // its part is another's now, and nobody could take the next one
    CHECK(told(probe::ready) == "200 degraded");
    roles(2, 0, true);
    CHECK(told(probe::ready) == "200 degraded");
    roles(2, 0, false);
    CHECK(told(probe::ready) == "503 unavailable");
    CHECK(told(probe::health) == "503 unavailable");
    CHECK(told(probe::live) == "200 degraded");
    CHECK(board.ask(probe::ready, begin).body.find("role attention has no worker and no spare")
          != std::string::npos);
    roles(0, 0, false);
    CHECK(told(probe::ready) == "503 unavailable");
  }
  roles(3, 1, true);
  CHECK(told(probe::ready) == "200 degraded"); // everybody is there, and not yet at work
  board.enter(phase::draining);
  CHECK(told(probe::ready) == "503 draining");
  board.enter(phase::failed);
  CHECK(told(probe::live) == "503 unavailable");
  board.enter(phase::serving);
  CHECK(told(probe::ready) == "200 ok");
  board.set_slow("model/1");
  CHECK(told(probe::ready) == "200 ok"); // nothing to take it out of service for
  CHECK(told(probe::health) == "200 degraded");
  CHECK(board.ask(probe::health, begin).body.find("slow workers: model/1") != std::string::npos);
  board.set_slow("");
  roles(2, 1, true);
  board.set_missing("attention/2");
  board.set_failing("attention/2");
  CHECK(told(probe::health) == "200 degraded");
  CHECK(board.ask(probe::health, begin).body.find("failing repeatedly: attention/2")
        != std::string::npos);
  board.set_missing("");
  board.set_failing("");
  roles(3, 1, true);
  board.set_queue_full(true);
  CHECK(told(probe::ready) == "503 unavailable");
  CHECK(told(probe::health) == "200 ok");
}

TEST_CASE("/health: degraded while requests recover, with the reason; and while they do for too "
          "long") {
  using probe = health_board::probe;
  const auto begin = std::chrono::steady_clock::now();
  health_board board{5s, 2s};
  board.enter(health_board::phase::serving);
  board.beats.beat(begin);
  const auto said = [&](const char* words, std::chrono::milliseconds later) {
    const auto x = board.ask(probe::health, begin + later);
    return x.status == 200 && x.body.find(words) != std::string::npos;
  };
  CHECK(said("\"status\":\"ok\"", 0ms));
  board.pauses.pauses(scheduler::request_id{1}, begin, true);
  CHECK(said("\"status\":\"degraded\"", 1s));
  CHECK(said("requests recovering: 1", 1s));
  CHECK(said("requests have stalled for 3000 ms, beyond recovery.max_pause_seconds", 3s));
  // Who is refused then must not be told to come.
  CHECK(board.ask(probe::ready, begin + 1s).status == 200);
  CHECK(board.ask(probe::ready, begin + 3s).status == 503);
  board.set_hunting(true); // then nobody is refused
  CHECK(board.ask(probe::ready, begin + 3s).status == 200);
  board.pauses.goes_on(scheduler::request_id{1});
  CHECK(board.ask(probe::ready, begin + 3s).status == 200);
  CHECK(said("\"status\":\"ok\"", 3s));
}

} // namespace lamella::actors::test
