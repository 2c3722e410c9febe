// What is told of workers one by one, and of stretches of time.
#include "base/time_histogram.hpp"
#include "net/metrics/metrics.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace lamella;
using namespace lamella::net;
using namespace std::chrono_literals;

namespace {

/// The value of a series, by its exact text; -1 when it is missing.
double value(const std::string& page, const std::string& series) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  return -1;
}

metrics::settings settings() {
  metrics::settings s;
  s.workers = {{"model", "model-0"}, {"attention", "attention-0"}};
  return s;
}

std::string state_of(const std::string& page) {
  std::string found;
  for (const std::string state : {"missing", "loading", "live", "failing"})
    if (value(page,
              "lamella_worker_state{role=\"model\",state=\"" + state + "\",worker=\"model-0\"}")
        == 1)
      found += state;
  return found;
}

} // namespace

TEST_CASE("a worker is in one state at a time, and up when it is live") {
  metrics m(settings());
  const auto up = R"(lamella_worker_up{role="model",worker="model-0"})";
  CHECK(state_of(m.scrape().body) == "missing");
  m.set_worker_state("model", "model-0", worker_condition::loading);
  CHECK(state_of(m.scrape().body) == "loading");
  CHECK(value(m.scrape().body, up) == 0);
  m.set_worker_state("model", "model-0", worker_condition::live);
  CHECK(state_of(m.scrape().body) == "live");
  CHECK(value(m.scrape().body, up) == 1);
  m.set_worker_state("model", "model-0", worker_condition::failing);
  CHECK(state_of(m.scrape().body) == "failing");
  CHECK(value(m.scrape().body, up) == 0);
}

TEST_CASE("slots that are used, of parity or orphans are in use, cached ones are not") {
  metrics m(settings());
  const auto ratio = R"(lamella_kv_usage_ratio{role="attention",worker="attention-0"})";
  const auto slots = [&](const std::string& state) {
    return value(m.scrape().body, "lamella_kv_slots{role=\"attention\",state=\"" + state
                                      + "\",worker=\"attention-0\"}");
  };
  CHECK(value(m.scrape().body, ratio) == 0); // nothing is known of its slots yet
  m.set_kv_slots("attention-0", {.free = 30, .used = 4, .cached = 3, .parity = 2, .orphan = 1});
  CHECK(slots("free") == 30);
  CHECK(slots("used") == 4);
  CHECK(slots("cached") == 3);
  CHECK(slots("parity") == 2);
  CHECK(slots("orphan") == 1);
  CHECK(value(m.scrape().body, ratio) == 0.175);
}

TEST_CASE("the busy ratio is that of the time between two scrapes, a second at least") {
  metrics m(settings());
  const auto t0 = std::chrono::steady_clock::now() + 1h;
  const auto ratio = [&](std::chrono::steady_clock::time_point now) {
    return value(m.scrape({}, now).body,
                 R"(lamella_role_busy_ratio{role="model",worker="model-0"})");
  };
  CHECK(ratio(t0) == 0);
  m.computed("model", "model-0", 1);
  m.computed("model", "model-0", 2);
  CHECK(ratio(t0 + 999ms) == 0); // somebody else scrapes soon after
  CHECK(ratio(t0 + 4s) == 0.75);
  CHECK(ratio(t0 + 4500ms) == 0.75);
  CHECK(ratio(t0 + 5s) == 0);
  m.computed("model", "model-0", 60); // an iteration that began long ago
  CHECK(ratio(t0 + 6s) == 1);
}

TEST_CASE("batches in flight are counted one by one, whoever tells last") {
  metrics m(settings());
  const auto now = [&] { return value(m.scrape().body, "lamella_batches_in_flight"); };
  m.set_in_flight(0, true);
  m.set_in_flight(1, true);
  m.set_in_flight(1, true);
  CHECK(now() == 2);
  m.set_in_flight(2, false);
  m.set_in_flight(0, false);
  CHECK(now() == 1);
}

TEST_CASE("times that were counted elsewhere fall into the buckets of those told one by one") {
  metrics one_by_one(settings()), at_once(settings());
  time_histogram counts;
  CHECK(counts.counts().empty());
  uint64_t total = 0;
  for (const auto bound : iteration_bounds)
    for (const auto time : {bound - 1ns, bound, bound + 1ns}) {
      counts.add(time);
      total += static_cast<uint64_t>(time.count());
      one_by_one.iteration_time(iteration_stage::slice,
                                std::chrono::duration<double>(time).count());
    }
  CHECK(counts.total_ns() == total);
  at_once.iteration_times(iteration_stage::slice, counts.counts(),
                          static_cast<double>(total) / 1e9);
  const auto expected = one_by_one.scrape().body, got = at_once.scrape().body;
  const auto counts_of = [](const std::string& page) {
    std::vector<std::string> result;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("lamella_iteration_seconds_bucket{stage=\"slice\""))
        result.push_back(line);
    return result;
  };
  CHECK(counts_of(expected).size() == iteration_bounds.size() + 1);
  CHECK(counts_of(expected).front().ends_with(" 2")); // the bound itself is in
  CHECK(counts_of(got) == counts_of(expected));
  const std::string sum = R"(lamella_iteration_seconds_sum{stage="slice"})";
  CHECK(value(got, sum) == doctest::Approx(value(expected, sum)));
}
