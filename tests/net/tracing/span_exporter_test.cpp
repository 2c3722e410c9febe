// Spans on their way to collectors that take them, refuse them, are slow, or never answer.
#include "net/tracing/span_exporter.hpp"
#include "tests/net/http/http_fixture.hpp"

#include <doctest/doctest.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <map>

using namespace lamella;
using namespace lamella::net;
using lamella::test::inbox;

namespace {

using std::chrono::milliseconds;

/// A collector whose every answer the test gives.
struct collector {
  inbox<http_exchange_ptr> calls;
  http_server server{test::echo_server::settings_of(test::patient_limits{}, 1),
                     {{"public",
                       "127.0.0.1",
                       0,
                       [this](http_exchange_ptr e) { calls.put(std::move(e)); },
                       {},
                       nullptr}}};

  collector() { server.start(); }
  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server.port("public")) + "/otel/";
  }
};

size_t spans_of(const http_exchange_ptr& call) {
  protozero::pbf_reader request{call->request().body};
  REQUIRE(request.next(1));
  auto group = request.get_message();
  REQUIRE(group.next(2));
  auto scope = group.get_message();
  size_t count = 0;
  for (; scope.next(2); scope.skip()) ++count;
  return count;
}

/// What became of spans.
struct book {
  inbox<uint64_t> exported;
  inbox<std::pair<span_loss, uint64_t>> lost;
  inbox<std::string> failing;

  /// Times so short or long that only what a test is about happens.
  span_exporter_settings settings() {
    span_exporter_settings x;
    x.gather = milliseconds{0};
    x.call_timeout = std::chrono::minutes{5};
    x.backoff = x.backoff_most = milliseconds{1};
    x.on_exported = [this](uint64_t n) { exported.put(n); };
    x.on_lost = [this](span_loss why, uint64_t n) { lost.put({why, n}); };
    x.on_failing = [this](const std::string& why) { failing.put(why); };
    return x;
  }
};

std::vector<span> some(size_t count) { return std::vector<span>(count); }

using loss = std::pair<span_loss, uint64_t>;

} // namespace

TEST_CASE("spans go to the collector in batches") {
  collector to;
  book seen;
  auto settings = seen.settings();
  settings.batch_spans = 3;
  span_exporter x{settings};
  x.set_endpoint(to.url());
  CHECK(x.on());
  x.offer(some(7));
  size_t total = 0;
  while (total < 7) {
    const auto call = to.calls.take();
    CHECK(call->request().method == "POST");
    CHECK(call->request().path == "/otel/v1/traces");
    CHECK(call->request().headers.get("content-type") == "application/x-protobuf");
    const auto count = spans_of(call);
    CHECK(count <= 3);
    total += count;
    call->respond(200, {{"content-type", "application/x-protobuf"}}, "");
    CHECK(seen.exported.take() == count);
  }
  CHECK(total == 7);
  CHECK(seen.lost.size() == 0);
}

TEST_CASE("a collector that is busy is asked again, with the same spans") {
  collector to;
  book seen;
  span_exporter x{seen.settings()};
  x.set_endpoint(to.url());
  x.offer(some(2));
  std::string body;
  for (const int status : {503, 429, 502, 504}) {
    const auto call = to.calls.take();
    if (!body.empty()) CHECK(call->request().body == body);
    body = call->request().body;
    call->respond(status, {{"retry-after", "100000"}}, "later"); // no longer than backoff_most
  }
  to.calls.take()->respond(200, {}, std::string{"\x0a\x02\x08\x01", 4});
  CHECK(seen.exported.take() == 1);
  CHECK(seen.lost.take() == loss{span_loss::collector, 1});
  CHECK(seen.failing.size() == 0);
}

TEST_CASE("spans that a collector never takes are dropped, and said once") {
  collector to;
  book seen;
  auto settings = seen.settings();
  settings.tries = 3;
  span_exporter x{settings};
  x.set_endpoint(to.url());
  for (int round = 0; round < 2; ++round) {
    x.offer(some(2));
    for (int i = 0; i < 3; ++i) to.calls.take()->respond(503, {}, "");
    CHECK(seen.lost.take() == loss{span_loss::collector, 2});
  }
  CHECK(seen.failing.take() == "it answers 503");
  x.offer(some(1));
  to.calls.take()->respond(400, {}, ""); // for good
  CHECK(seen.lost.take() == loss{span_loss::collector, 1});
  CHECK(seen.failing.size() == 0);
  x.offer(some(1));
  to.calls.take()->respond(200, {}, "");
  CHECK(seen.exported.take() == 1);
}

TEST_CASE("while a collector does not answer, offers wait in a bounded queue and never block") {
  collector to;
  book seen;
  auto settings = seen.settings();
  settings.queue_spans = 10;
  settings.batch_spans = 4;
  span_exporter x{settings};
  x.set_endpoint(to.url());
  x.offer(some(4));
  const auto held = to.calls.take(); // and not answered
  x.offer(some(8));
  x.offer(some(3)); // all or none
  CHECK(seen.lost.take() == loss{span_loss::queue, 3});
  x.offer(some(2));
  CHECK(seen.lost.size() == 0);
  held->respond(200, {}, "");
  CHECK(seen.exported.take() == 4);
  to.calls.take()->respond(200, {}, "");
  CHECK(seen.exported.take() == 4);
}

TEST_CASE("a collector that answers too late has not answered") {
  collector to;
  book seen;
  auto settings = seen.settings();
  settings.call_timeout = milliseconds{1};
  settings.tries = 2;
  span_exporter x{settings};
  x.set_endpoint(to.url());
  x.offer(some(2));
  CHECK(seen.lost.take() == loss{span_loss::collector, 2});
  CHECK(seen.failing.size() == 1);
}

TEST_CASE("nobody listens: spans are dropped after the last try") {
  book seen;
  std::string url;
  {
    const collector gone;
    url = gone.url();
  }
  span_exporter x{seen.settings()};
  x.set_endpoint(url);
  x.offer(some(1));
  CHECK(seen.lost.take() == loss{span_loss::collector, 1});
}

TEST_CASE("what waits when the exporter is stopped is sent, or dropped when its time is up") {
  SUBCASE("sent") {
    collector to;
    book seen;
    auto settings = seen.settings();
    settings.gather = settings.flush = std::chrono::minutes{5};
    span_exporter x{settings};
    x.set_endpoint(to.url());
    x.offer(some(1));
    std::thread stopper{[&] { x.stop(); }};
    to.calls.take()->respond(200, {}, "");
    stopper.join();
    CHECK(seen.exported.take() == 1);
    CHECK_FALSE(x.on());
    x.offer(some(2));
    CHECK(seen.lost.take() == loss{span_loss::stopped, 2});
  }
  SUBCASE("dropped") {
    collector to;
    book seen;
    auto settings = seen.settings();
    settings.flush = milliseconds{1};
    settings.batch_spans = 1;
    span_exporter x{settings};
    x.set_endpoint(to.url());
    x.offer(some(1));
    const auto held = to.calls.take(); // which is never answered
    x.offer(some(4));
    x.stop();
    CHECK(seen.lost.take() == loss{span_loss::stopped, 1});
    CHECK(seen.lost.take() == loss{span_loss::stopped, 4});
  }
}

TEST_CASE("the collector may change, and be none") {
  collector one, other;
  book seen;
  span_exporter x{seen.settings()};
  CHECK_FALSE(x.on());
  x.offer(some(1));
  CHECK(seen.lost.take() == loss{span_loss::stopped, 1});
  CHECK_THROWS_AS(x.set_endpoint("collector:4318/a?b"), std::invalid_argument);
  CHECK_FALSE(x.on());
  x.set_endpoint(one.url());
  x.offer(some(1));
  const auto held = one.calls.take();
  x.set_endpoint(other.url());
  held->respond(503, {}, ""); // those spans were for the first
  CHECK(seen.lost.take() == loss{span_loss::stopped, 1});
  x.offer(some(2));
  other.calls.take()->respond(200, {}, "");
  CHECK(seen.exported.take() == 2);
  x.set_endpoint("");
  CHECK_FALSE(x.on());
}
