// What `lamella chaos` says of KV that was computed again.
#include "base/json.hpp"
#include "cli/client/chaos.hpp"

#include <doctest/doctest.h>

using namespace lamella;

namespace {

/// An injury of two streams, the last of which was silent for so long.
cli::chaos_injury injury(uint64_t rebuilt, double last_ms) {
  cli::chaos_injury x;
  x.seat = "attention/1";
  x.streams = 2;
  x.pauses_ms = {last_ms, last_ms / 2};
  x.rebuilt_tokens = rebuilt;
  return x;
}

} // namespace

TEST_CASE("L-M26 the report tells the tokens computed again, and how near the last stream came") {
  cli::chaos_report report;
  report.injuries = {injury(20'000, 9'900), injury(0, 100)};
  report.recoveries["recompute"] = 50;
  report.prefill_rate = 2'000;
  CHECK(cli::rebuild_limit_ms(20'000, 2'000) == doctest::Approx(14'000));
  const auto page = cli::chaos_page(report, {});
  CHECK(page.find("KV of 20000 tokens recomputed; prefill alone 2000 tokens/s: 1 s + 1.3 x "
                  "10.00 s = 14.00 s, last back after 0.71 of that\n")
        != std::string::npos);
  const auto begin = page.rfind('\n', page.size() - 2) + 1;
  const auto json = parse_json(page.substr(begin));
  const auto* rebuild = json.find("rebuild");
  REQUIRE(rebuild != nullptr);
  const auto* injuries = rebuild->find("injuries")->get_if<json_value::array>();
  REQUIRE(injuries->size() == 1); // the other one cost nothing
  CHECK(*injuries->front().find("limit_ms")->get_if<double>() == doctest::Approx(14'000));
}

TEST_CASE("The last line of the report is one JSON object with all that a script asks for") {
  cli::chaos_report report;
  report.injuries = {injury(0, 100), injury(0, 400)};
  report.recoveries = {{"parity", 0}, {"recompute", 0}, {"replay", 2}, {"replica", 5}};
  const auto page = cli::chaos_page(report, {});
  CHECK(page.find("recovered by replica: 5") != std::string::npos);
  CHECK(page.find("recovered by parity") == std::string::npos); // people are told what there was
  const auto json = parse_json(page.substr(page.rfind('\n', page.size() - 2) + 1));
  for (const char* name : {"version", "injected", "lost", "wrong", "duplicates"}) {
    CAPTURE(name);
    CHECK(json.find(name) != nullptr);
  }
  for (const char* name : {"p50", "p99", "max"}) {
    CAPTURE(name);
    CHECK(json.find("pause_ms")->find(name) != nullptr);
  }
  CHECK(*json.find("pause_ms")->find("max")->get_if<double>() == 400);
  for (const auto& [method, count] : report.recoveries) {
    CAPTURE(method);
    CHECK(json.find("recoveries")->find(method) != nullptr);
  }
  CHECK(*json.find("passed")->get_if<bool>());
}

TEST_CASE("A fault that no stream felt has no pause, which is not a pause of 0") {
  cli::chaos_report report;
  report.injuries = {injury(0, 100)};
  report.injuries[0].pauses_ms.clear();
  const auto page = cli::chaos_page(report, {});
  CHECK(page.find("first back -, median -, last back -") != std::string::npos);
  CHECK(page.find("p50 -, p99 -, max -") != std::string::npos);
  const auto json = parse_json(page.substr(page.rfind('\n', page.size() - 2) + 1));
  for (const char* name : {"p50", "p99", "max"})
    CHECK(*json.find("pause_ms")->find(name) == json_value(nullptr));
}

TEST_CASE("L-M26 where nothing was computed again, the report says nothing of it") {
  cli::chaos_report report;
  report.injuries = {injury(0, 100)};
  const auto page = cli::chaos_page(report, {});
  CHECK(page.find("recomputed") == std::string::npos);
  CHECK(page.find("rebuild") == std::string::npos);
}
