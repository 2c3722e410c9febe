// What streams record of their steps: spans, their bound, and that nothing is kept unasked.
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/trace/step_trace.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <string>
#include <vector>

using namespace lamella::gpu;
using namespace std::chrono_literals;

namespace {

constexpr step_label slice(uint32_t number, uint64_t iteration = 1) {
  return {"slice", "wait", step_kind::compute, number, 4, iteration};
}
constexpr step_label send(uint32_t layer) {
  return {"send_q", "send_q", step_kind::send, layer, 4, 1};
}
constexpr step_label receive(uint32_t layer) {
  return {"recv_attention", "recv_attention", step_kind::wait, layer, 4, 1};
}
constexpr step_label attend(uint32_t layer) {
  return {"attend_previous", "wait_q", step_kind::compute, layer, 4, 1};
}

/// A recording of this test alone, on a device of its own.
struct recorder {
  static inline uint64_t last = 0x7e57;
  uint64_t id = ++last;
  std::string device = "device-" + std::to_string(id);
  std::shared_ptr<step_lane> lane = traces().make_lane(device, "0");
  trace_clock::time_point zero = trace_clock::now();

  explicit recorder(bool starts = true) {
    if (starts) traces().start(id, zero + 24h);
  }
  ~recorder() {
    traces().stop();
    traces().forget(id, {device});
  }

  trace_clock::time_point at(int us) const { return zero + std::chrono::microseconds{us}; }
  void step(const step_label& x, int from, int to, bool blocked = false) {
    lane->add(x, at(from), at(to), blocked);
  }
  lane_record read() {
    auto all = traces().read(id, {device});
    return all.empty() ? lane_record{} : all.front();
  }
  /// "slice 3 [10 20]", line by line.
  std::vector<std::string> lines() {
    std::vector<std::string> result;
    const auto us = [this](trace_clock::time_point x) {
      return std::to_string(
          std::chrono::duration_cast<std::chrono::microseconds>(x - zero).count());
    };
    for (const auto& x : read().spans)
      result.push_back(std::string{x.label.name} + " " + std::to_string(x.label.number) + " ["
                       + us(x.begin) + " " + us(x.end) + "]");
    return result;
  }
};

using text = std::vector<std::string>;

} // namespace

TEST_CASE("the steps of a slice are one span, and its sends lie within it") {
  recorder r;
  r.step(slice(0), 0, 10);
  r.step(slice(0), 10, 15);
  r.step(send(0), 15, 17);
  r.step(slice(0), 17, 30);
  r.step(receive(0), 30, 31, true);
  r.step(receive(0), 40, 42);
  r.step(slice(1), 42, 50);
  r.lane->end_work(r.at(51));
  CHECK(
      r.lines()
      == text{"send_q 0 [15 17]", "slice 0 [0 30]", "recv_attention 0 [30 42]", "slice 1 [42 50]"});
  const auto spans = r.read().spans;
  CHECK(spans[1].busy == 30us);
  CHECK(spans[2].busy == 2us);
}

TEST_CASE("a step that was blocked is told as a wait and the step") {
  recorder r;
  r.step(attend(2), 5, 6, true);
  r.step(attend(2), 7, 8, true);
  r.step(attend(2), 20, 30);
  r.lane->end_work(r.at(30));
  CHECK(r.lines() == text{"wait_q 2 [5 20]", "attend_previous 2 [20 30]"});
}

TEST_CASE("slices of two iterations with one number stay two spans") {
  recorder r;
  r.step(slice(3, 1), 0, 10);
  r.step(slice(3, 2), 10, 20);
  r.lane->end_work(r.at(20));
  CHECK(r.lines() == text{"slice 3 [0 10]", "slice 3 [10 20]"});
}

TEST_CASE("between two works a lane is idle, and a wait that is cut off ends with its work") {
  recorder r;
  r.step(slice(0), 0, 10);
  r.lane->end_work(r.at(10));
  r.step(slice(0, 2), 50, 60);
  r.step(receive(0), 60, 61, true);
  r.lane->end_work(r.at(90));
  CHECK(r.lines() == text{"slice 0 [0 10]", "idle 0 [10 50]", "slice 0 [50 60]", "wait 0 [60 90]"});
}

TEST_CASE("whole works of a device that is not seen between its steps follow each other") {
  recorder r;
  r.lane->add_whole({"iteration", "wait", step_kind::compute, 0, 4, 7}, r.at(0), r.at(10));
  r.lane->add_whole({"iteration", "wait", step_kind::compute, 0, 4, 8}, r.at(30), r.at(40));
  CHECK(r.lines() == text{"iteration 0 [0 10]", "idle 0 [10 30]", "iteration 0 [30 40]"});
}

TEST_CASE("a lane keeps its newest spans, no more than there is room for, and counts the others") {
  recorder r;
  const auto count = static_cast<int>(step_traces::lane_spans_max) + 500;
  for (int i = 0; i < count; ++i) r.lane->add_whole({}, r.at(i), r.at(i + 1));
  const auto kept = r.read();
  CHECK(kept.spans.size() >= step_traces::lane_spans_min);
  CHECK(kept.spans.size() <= step_traces::lane_spans_max);
  CHECK(kept.spans.size() + kept.dropped == static_cast<size_t>(count));
  CHECK(kept.spans.back().end == r.at(count));
  for (size_t i = 1; i < kept.spans.size(); ++i)
    REQUIRE(kept.spans[i].begin == kept.spans[i - 1].end);
}

TEST_CASE("what ends after the recording is not kept, and ends it") {
  recorder r{false};
  traces().start(r.id, r.at(100));
  CHECK(traces().on());
  r.lane->add_whole({}, r.at(0), r.at(100));
  CHECK(traces().on());
  r.lane->add_whole({}, r.at(100), r.at(101));
  CHECK_FALSE(traces().on());
  CHECK(r.read().spans.size() == 1);
}

TEST_CASE("the next recording forgets the one before, which is empty from then on") {
  recorder r;
  r.lane->add_whole({}, r.at(0), r.at(1));
  traces().start(r.id, r.at(5)); // again: nothing changes
  CHECK(r.read().spans.size() == 1);
  const auto before = std::exchange(r.id, ++recorder::last);
  traces().start(r.id, r.zero + 24h);
  CHECK(traces().read(before, {r.device}).empty());
  CHECK(traces().read(r.id, {r.device}).empty());
}

namespace {

/// A work of some steps, every second of which is blocked until another stream has run.
class countdown final : public work, public traced_work {
public:
  countdown(uint32_t steps, stream& other) : left_{steps}, other_{other} {}
  progress advance(kernel_context) override {
    if (left_ % 2 == 0 && std::exchange(waits_, false)) {
      other_.launch(std::make_shared<nothing>(), clock::time_point::max(), [](work_status) {});
      return progress::blocked;
    }
    waits_ = true;
    return --left_ == 0 ? progress::done : progress::advanced;
  }
  step_label next_step() const override { return attend(left_); }
  step_label whole() const override { return attend(0); }

private:
  struct nothing final : work {
    progress advance(kernel_context) override { return progress::done; }
  };

  uint32_t left_;
  stream& other_;
  bool waits_ = true;
};

/// Runs a work of four steps; true where it is done.
bool run(stream& on, stream& other) {
  std::promise<work_status> end;
  on.launch(std::make_shared<countdown>(4, other), clock::time_point::max(),
            [&](work_status status) { end.set_value(status); });
  return end.get_future().get() == work_status::done;
}

} // namespace

TEST_CASE("streams of a host record each step while somebody asks, and nothing otherwise") {
  host_engine engine{1, reference_operators()};
  recorder r{false};
  const auto device = engine.make_device(r.device);
  const auto stream = device->make_stream("7");
  const auto other = engine.make_device("other")->make_stream("0");
  REQUIRE(run(*stream, *other));
  traces().start(r.id, r.zero + 24h);
  CHECK(traces().read(r.id, {r.device}).empty());
  REQUIRE(run(*stream, *other));
  const auto all = traces().read(r.id, {r.device});
  traces().stop();
  REQUIRE(run(*stream, *other));
  REQUIRE(all.size() == 1);
  CHECK(all[0].stream == "7");
  text names;
  for (const auto& x : all[0].spans)
    names.push_back(std::string{x.label.name} + " " + std::to_string(x.label.number));
  CHECK(names
        == text{"wait_q 4", "attend_previous 4", "attend_previous 3", "wait_q 2",
                "attend_previous 2", "attend_previous 1"});
  for (size_t i = 1; i < all[0].spans.size(); ++i)
    CHECK(all[0].spans[i].begin >= all[0].spans[i - 1].end);
  CHECK(traces().read(r.id, {r.device})[0].spans.size() == all[0].spans.size());
}
