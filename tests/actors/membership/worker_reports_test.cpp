// What workers report of themselves as metrics of the control process.
#include "actors/membership/worker_reports.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/shared/work_meter.hpp"
#include "actors/worker/worker.hpp"
#include "net/link/in_process_channel.hpp"
#include "net/link/pending_link.hpp"
#include "tests/actors/device/stepped_device.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

namespace {

constexpr scheduler::seat model_0{worker_role::model, 0};

net::metrics::settings settings() {
  net::metrics::settings x;
  x.workers = {{"model", "model-0"}, {"model", "model-1"}};
  return x;
}

/// The value of a series, by its exact text; -1 when it is missing.
double value(net::metrics& metrics, const std::string& series,
             std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
  const auto page = metrics.scrape({}, now).body;
  const auto at = page.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

/// What a worker with that meter says.
worker_peers report_of(const work_meter& meter) {
  worker_peers x;
  x.computed_ns = meter.computed_ns();
  for (const auto& times : meter.times()) x.stages.push_back({times.counts(), times.total_ns()});
  return x;
}

const std::string slices = R"(lamella_iteration_seconds_count{stage="slice"})",
                  slice_time = R"(lamella_iteration_seconds_sum{stage="slice"})",
                  sends = R"(lamella_iteration_seconds_count{stage="send"})",
                  waits = R"(lamella_iteration_seconds_count{stage="wait"})",
                  busy = R"(lamella_role_busy_ratio{role="model",worker="model-0"})";

} // namespace

TEST_CASE("iterations of a worker are counted once, by stage, over restarts of the worker") {
  net::metrics metrics{settings()};
  worker_reports reports;
  work_meter first;
  reports.note(model_0, 1, report_of(first), metrics);
  CHECK(value(metrics, waits) == 0);
  first.spend({30ms, 2ms, 500us}, replica_stages);
  first.spend({10ms, 0ms, 500us}, replica_stages); // of a device that does not tell
  reports.note(model_0, 1, report_of(first), metrics);
  reports.note(model_0, 1, report_of(first), metrics);
  CHECK(value(metrics, slices) == 2);
  CHECK(value(metrics, slice_time) == doctest::Approx(0.040));
  CHECK(value(metrics, R"(lamella_iteration_seconds_bucket{stage="slice",le="0.01"})") == 1);
  CHECK(value(metrics, sends) == 1);
  CHECK(value(metrics, waits) == 2);
  first.spend({10ms, 1ms, 1ms}, replica_stages);
  const auto late = report_of(first);
  work_meter second; // another worker sits there
  second.spend({10ms, 1ms, 1ms}, replica_stages);
  reports.note(model_0, 2, report_of(second), metrics);
  reports.note(model_0, 1, late, metrics); // an answer that was long on its way
  CHECK(value(metrics, slices) == 3);
  CHECK(value(metrics, slice_time) == doctest::Approx(0.050));
  worker_peers strange = report_of(second);
  strange.stages[0].counts.resize(2);
  strange.stages.resize(9);
  reports.note(model_0, 2, strange, metrics);
  CHECK(value(metrics, slices) == 3);
}

TEST_CASE("lines that a worker's log lacks are counted once, by role") {
  net::metrics metrics{settings()};
  worker_reports reports;
  const std::string series = R"(lamella_log_lines_dropped_total{role="model"})";
  CHECK(value(metrics, series) == 0);
  worker_peers x;
  for (const auto& [incarnation, lines, all] :
       {std::array<uint32_t, 3>{1, 7, 7}, {1, 7, 7}, {1, 9, 9}, {2, 1, 10}}) {
    x.log_dropped = lines;
    reports.note(model_0, incarnation, x, metrics);
    CHECK(value(metrics, series) == all);
  }
}

TEST_CASE("frames that a worker has dropped are counted once, by role and reason") {
  net::metrics metrics{settings()};
  worker_reports reports;
  const auto count = [&](const std::string& reason) {
    return value(metrics, "lamella_frames_dropped_total{reason=\"" + reason + "\",role=\"model\"}");
  };
  CHECK(count("damaged") == 0);
  worker_peers x;
  x.dropped = {1, 2, 3, 4};
  reports.note(model_0, 1, x, metrics);
  reports.note(model_0, 1, x, metrics);
  CHECK(count("epoch") == 1);
  CHECK(count("attempt") == 2);
  CHECK(count("duplicate") == 3);
  CHECK(count("damaged") == 4);
  x.dropped = {1, 3, 3, 4, 99}; // of a version that knows more of them
  reports.note(model_0, 1, x, metrics);
  CHECK(count("attempt") == 3);
  x.dropped = {2}; // another worker sits there
  reports.note(model_0, 2, x, metrics);
  CHECK(count("epoch") == 3);
  CHECK(count("damaged") == 4);
}

TEST_CASE(
    "reliability A3: a worker tells what its links have dropped, those of earlier epochs too") {
  stage s;
  stepped_engine engine;
  std::vector<std::shared_ptr<net::pending_link>> links;
  worker_config c;
  c.where = {worker_role::attention, 0};
  c.terms.layers = c.terms.kv_heads = c.terms.group = 1;
  c.terms.head_dim = 8;
  c.make_device = [&](const std::string& name, uint32_t) { return engine.make_device(name); };
  c.port.open = [&](const link_order& x) {
    links.push_back(
        std::make_shared<net::pending_link>(x.key, 64, nullptr, [](gpu::channel_state) {}));
    return links.back()->ends();
  };
  c.port.report = [](const net::link_key&) { return link_report{}; };
  c.port.close = [](uint64_t) {};
  const auto seat = s.spawn(worker, std::move(c));
  const auto dropped = [&] {
    const auto answer = s.ask<worker_peers>(seat, status_atom_v);
    s.settle();
    return answer->value.dropped;
  };
  using counts = std::vector<uint64_t>; // epoch, attempt, duplicate, damaged
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    epoch_open order;
    order.epoch = epoch;
    order.streams = {{stream_id{0}, 0}};
    order.replicas = {{"model/0", "a"}};
    order.shards = {{"attention/0", "b"}};
    order.pool = {{{{1, 16}}}, 0, 64, 64, 0, 0, 0, 0};
    s.ask<epoch_ready>(seat, order);
    s.settle();
    REQUIRE(links.size() == epoch);
    CHECK(dropped() == counts{0, epoch - 1, 0, epoch - 1});
    const auto way = net::make_in_process_channel(4, 64);
    REQUIRE(links.back()->bind({way.to, way.from}));
    way.to->reserve(8);
    way.to->commit({epoch, 1});
    CHECK(links.back()->ends().from->receive({epoch, 1, 1}, 8) == nullptr);
    way.from->end(gpu::channel_state::torn); // as by a frame that fails its checks
    CHECK(dropped() == counts{0, epoch, 0, epoch});
  }

  s.end_all();
  engine.queues.clear();
}

TEST_CASE("what a worker has computed is its share of the time between two scrapes") {
  net::metrics metrics{settings()};
  worker_reports reports;
  const auto t0 = std::chrono::steady_clock::now() + 1h;
  CHECK(value(metrics, busy, t0) == 0);
  work_meter meter;
  meter.spend({900ms, 100ms, 5s}, replica_stages);
  reports.note(model_0, 1, report_of(meter), metrics);
  meter.compute(1s); // of another kind: no iteration of a stage
  reports.note(model_0, 1, report_of(meter), metrics);
  CHECK(value(metrics, slices) == 1);
  CHECK(value(metrics, busy, t0 + 4s) == doctest::Approx(0.5));
}

TEST_CASE("membership tells how long each seat has been silent") {
  auto metrics = std::make_shared<net::metrics>(settings());
  membership_world w{[&](membership_config& m) {
    m.seats = {};
    m.seats.add(worker_role::model, 2);
    m.metrics = metrics;
    m.poll_interval = 1s;
  }};
  const auto age = [&](const std::string& worker) {
    w.ask<system_status>(w.members, status_atom_v);
    w.settle();
    return value(*metrics,
                 "lamella_heartbeat_age_seconds{role=\"model\",worker=\"" + worker + "\"}");
  };
  auto first = w.join("model");
  CHECK(age("model-0") == 0);
  CHECK(age("model-1") == 0); // nobody was ever there: from now on
  w.advance(5s, 100ms);
  CHECK(age("model-0") == 0); // it answers
  CHECK(age("model-1") == doctest::Approx(5));
  w.end(first.worker);
  w.advance(3s, 100ms);
  CHECK(age("model-0") == doctest::Approx(3));
  CHECK(age("model-1") == doctest::Approx(8));
  w.join("model");
  CHECK(age("model-0") == 0);
}

} // namespace lamella::actors::test
