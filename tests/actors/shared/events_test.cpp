#include "actors/shared/events.hpp"

#include <doctest/doctest.h>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <set>
#include <sstream>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point noon{1'769'860'800'123ms}; // 2026-01-31 12:00 UTC

event resized(uint32_t to, std::chrono::system_clock::time_point at = noon) {
  return {event_kind::pool_resized, at, {{"pool", "attention"}, {"to", to}}};
}

std::vector<uint64_t> numbers_of(const event_log::page& x) {
  std::vector<uint64_t> result;
  for (const auto& each : x.events) result.push_back(each.number);
  return result;
}

} // namespace

TEST_CASE("An event has a subject, and a line as logs have it") {
  const event lost{event_kind::worker_lost,
                   noon,
                   {{"seat", "attention/1"}, {"pid", 7}, {"reason", "its process is gone"}}};
  CHECK(name_of(lost.kind) == "worker_lost");
  CHECK(lost.subject() == "attention/1");
  CHECK(lost.text() == R"(worker lost seat=attention/1 pid=7 reason="its process is gone")");
  const event taken{
      event_kind::epoch_taken_over, noon, {{"epoch", 7u}, {"stopped_seconds", 0.01234}}};
  CHECK(taken.subject() == "epoch 7");
  CHECK(taken.text() == "epoch taken over epoch=7 stopped_seconds=0.0123");
  const event reloaded{event_kind::config_reloaded, noon, {{"applied", 1}}};
  CHECK(reloaded.subject() == "service");
}

TEST_CASE("Every kind has a name and words of its own") {
  std::set<std::string> names, lines;
  for (auto i = 0; i <= static_cast<int>(event_kind::service_draining); ++i) {
    const event x{static_cast<event_kind>(i)};
    names.emplace(name_of(x.kind));
    lines.insert(x.text());
  }
  CHECK(names.size() == static_cast<size_t>(event_kind::service_draining) + 1);
  CHECK(lines.size() == names.size());
}

TEST_CASE("An event in JSON has its numbers as numbers") {
  auto x = resized(3);
  x.number = 12;
  json_writer out;
  write_event(out, x);
  CHECK(out.text()
        == R"({"number":12,"time":"2026-01-31T12:00:00.123Z","kind":"pool_resized",)"
           R"("subject":"attention","text":"pool resized pool=attention to=3",)"
           R"("fields":{"pool":"attention","to":3}})");
}

TEST_CASE("The newest events are kept, and who comes too late hears how many are gone") {
  event_log log{3};
  CHECK(log.after(0).newest == 0);
  for (uint32_t i = 1; i <= 5; ++i) log.add(resized(i));
  const auto all = log.after(0);
  CHECK(numbers_of(all) == std::vector<uint64_t>{3, 4, 5});
  CHECK(all.missed == 2);
  CHECK(all.newest == 5);
  CHECK(log.after(2).missed == 0);
  CHECK(numbers_of(log.after(4)) == std::vector<uint64_t>{5});
  CHECK(log.after(5).events.empty());
  CHECK(log.after(5).missed == 0);
  // A reader of an earlier run of the service.
  CHECK(numbers_of(log.after(700)) == std::vector<uint64_t>{3, 4, 5});
}

TEST_CASE("Events before a time are left out") {
  event_log log;
  log.add(resized(1, noon));
  log.add(resized(2, noon + 10s));
  CHECK(numbers_of(log.after(0, noon + 5s)) == std::vector<uint64_t>{2});
  CHECK(numbers_of(log.after(0, noon)) == std::vector<uint64_t>{1, 2});
}

TEST_CASE("An event takes bounded memory, and no character is cut in two") {
  event_log log;
  event x{event_kind::worker_refused, noon};
  const std::string text(event_log::value_bytes_max - 1, 'a');
  x.fields.emplace_back("worker", text + "\xc3\xa9");
  for (int i = 0; i < 40; ++i) x.fields.emplace_back("more", "value");
  log.add(x);
  const auto kept = log.after(0).events.front();
  CHECK(kept.fields.size() == event_log::fields_max);
  CHECK(kept.fields[0].value == text);
}

TEST_CASE("Who waits is woken once by the next event") {
  event_log log;
  log.add(resized(1));
  int first = 0, second = 0;
  CHECK(log.wait(0, [&] { ++first; }) == 0); // there is one already
  const auto ticket = log.wait(1, [&] { ++first; });
  CHECK(ticket != 0);
  const auto other = log.wait(1, [&] { ++second; });
  CHECK(other != ticket);
  CHECK(log.waiting() == 2);
  log.stop_waiting(other);
  log.add(resized(2));
  log.add(resized(3));
  CHECK(first == 1);
  CHECK(second == 0);
  CHECK(log.waiting() == 0);
}

TEST_CASE("What is told is logged and kept") {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  const auto here =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(text));
  here->set_pattern("%l %v");
  spdlog::set_default_logger(here);
  const auto newest = events().after(0).newest;
  tell(event_kind::pool_rolled_back, {{"pool", "model"}, {"reason", "late"}});
  spdlog::set_default_logger(before);
  CHECK(text.str() == "error pool not resized pool=model reason=\"late\"\n");
  const auto kept = events().after(newest).events;
  REQUIRE(kept.size() == 1);
  CHECK(kept.front().subject() == "model");
  CHECK(kept.front().number == newest + 1);
}

} // namespace lamella::actors::test
