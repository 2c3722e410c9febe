// A recording of workers as the text that trace viewers open.
#include "actors/gateway/trace_text.hpp"
#include "tests/actors/gateway/served.hpp"

namespace lamella::actors::test {

namespace {

recorded_worker some_worker(const std::string& seat, uint64_t lane) {
  recorded_worker w;
  w.who.seat = seat;
  w.who.part = "replica 0";
  w.who.host = "here";
  w.who.pid = 7;
  w.clock = clock_offset{2'000, 500, false};
  w.names = {"slice", "idle"};
  w.lanes = {{lane, "host/" + seat, "0", 3}, {lane + 1, "host/" + seat, "65537", 0}};
  w.spans = {{12'000, 15'500, 3'000, 9, 4, 8, 0, 0, 0}, {15'500, 20'000, 0, 0, 0, 0, 1, 1, 5}};
  return w;
}

} // namespace

TEST_CASE("a trace has a process for each worker, a thread for each lane, and microseconds") {
  recording x;
  x.model = "tiny \"quoted\"";
  x.seconds = 0.5;
  x.begin_ns = 10'000;
  x.workers.push_back(some_worker("model/0", 1));
  x.workers.push_back({});
  x.workers.back().who.seat = "attention/0";
  x.workers.back().trouble = "it did not begin";
  const auto json = parse_json(trace_json(x));
  CHECK(text_at(json, "otherData.model") == x.model);
  CHECK(text_at(json, "otherData.workers.0.clock") == "measured");
  CHECK(number_at(json, "otherData.workers.0.offset_us") == 2);
  CHECK(number_at(json, "otherData.workers.0.error_us") == .5);
  CHECK(int_at(json, "otherData.workers.0.dropped") == 3);
  CHECK(text_at(json, "otherData.workers.1.clock") == "unknown");
  CHECK(text_at(json, "otherData.left_out.0.seat") == "attention/0");
  CHECK(text_at(json, "otherData.left_out.0.reason") == "it did not begin");
  std::vector<std::string> lines;
  for (size_t i = 0; i < size_at(json, "traceEvents"); ++i) {
    const auto at_event = "traceEvents." + std::to_string(i);
    if (text_at(json, at_event + ".ph") == "X")
      lines.push_back(text_at(json, at_event + ".name"));
    else if (text_at(json, at_event + ".name").ends_with("_name"))
      lines.push_back(text_at(json, at_event + ".args.name"));
  }
  CHECK(lines
        == std::vector<std::string>{"model/0 (replica 0)", "batch 0, host/model/0",
                                    "prefill 1, host/model/0", "slice 4", "idle", "attention/0"});
  for (size_t i = 0; i < size_at(json, "traceEvents"); ++i)
    if (const auto e = "traceEvents." + std::to_string(i);
        text_at(json, e + ".name") == "slice 4") {
      CHECK(number_at(json, e + ".ts") == 0); // 12 us of a clock that is 2 us ahead
      CHECK(number_at(json, e + ".dur") == 3.5);
      CHECK(int_at(json, e + ".pid") == 1);
      CHECK(int_at(json, e + ".tid") == 1);
      CHECK(text_at(json, e + ".cat") == "compute");
      CHECK(int_at(json, e + ".args.iteration") == 9);
      CHECK(int_at(json, e + ".args.rows") == 8);
      CHECK(number_at(json, e + ".args.busy_us") == 3);
    }
}

TEST_CASE("the clock of a worker is set by the middle of a round trip, within half of it") {
  const auto x = offset_by({1'000'500, "there"}, "here", 100, 700);
  CHECK(x.offset_ns == 1'000'100);
  CHECK(x.error_ns == 300);
  CHECK_FALSE(x.shared);
  // Hosts have one clock, unless it shows that this is another one.
  CHECK(offset_by({450, "here"}, "here", 100, 700).shared);
  CHECK(offset_by({450, "here"}, "here", 100, 700).error_ns == 0);
  CHECK_FALSE(offset_by({5'000'000, "here"}, "here", 100, 700).shared);
  CHECK_FALSE(offset_by({450, "unknown"}, "unknown", 100, 700).shared);
}

TEST_CASE("a lane that two workers of a process tell of is told once") {
  recording x;
  x.workers = {some_worker("model/0", 1), some_worker("model/1", 2)};
  drop_told_twice(x);
  CHECK(x.workers[0].lanes.size() == 2);
  REQUIRE(x.workers[1].lanes.size() == 1);
  CHECK(x.workers[1].lanes[0].number == 3);
  REQUIRE(x.workers[1].spans.size() == 1);
  CHECK(x.workers[1].spans[0].lane == 0);
}

TEST_CASE("a stream has a name that operators know") {
  CHECK(lane_words("3") == "batch 3");
  CHECK(lane_words("65536") == "prefill 0");
  CHECK(lane_words("98305") == "move 1");
  CHECK(lane_words("131072") == "offer 0");
  CHECK(lane_words("196609") == "member 1");
  CHECK(lane_words("262144") == "check 0");
  CHECK(lane_words("links") == "links");
}

} // namespace lamella::actors::test
