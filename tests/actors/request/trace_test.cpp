// The spans of requests, of the times that they have noted.
#include "actors/protocol/tokens.hpp"
#include "tests/actors/request/request_world.hpp"

#include <algorithm>

namespace lamella::actors::test {
namespace {

using std::chrono::milliseconds;

struct span_book : net::span_sink {
  std::vector<net::span> spans;
  bool open = true;
  bool on() const override { return open; }
  void offer(std::vector<net::span> more) override {
    std::ranges::move(more, std::back_inserter(spans));
  }
  const net::span& of(const std::string& name) const {
    const auto found =
        std::ranges::find_if(spans, [&](const net::span& x) { return x.name.starts_with(name); });
    REQUIRE_MESSAGE(found != spans.end(), "no span " << name);
    return *found;
  }
};

const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
const std::chrono::system_clock::time_point now{std::chrono::hours{24}};

std::shared_ptr<request_traces> traces_of(std::shared_ptr<span_book> to, uint32_t percent) {
  auto traces = std::make_shared<request_traces>();
  traces->spans = std::move(to);
  traces->sample_percent = percent;
  return traces;
}

net::http_headers headers_of(const std::string& traceparent) {
  if (traceparent.empty()) return {};
  return {{"traceparent", traceparent}, {"tracestate", "a=1"}};
}

/// A world whose spans a test reads. Its date stands still: what differs are times of the request.
struct world : request_world {
  std::shared_ptr<span_book> book;

  explicit world(const std::string& traceparent, uint32_t percent = 100,
                 std::shared_ptr<span_book> to = std::make_shared<span_book>(),
                 const std::string& more = {})
      : request_world{completion_body(10, 6, 5, more),
                      {[] { return now; }, [] { return 99; }},
                      65'536,
                      nullptr,
                      traces_of(to, percent),
                      headers_of(traceparent)},
        book{std::move(to)} {}

  void finish_from(uint32_t first) {
    for (uint32_t i = first; i < 6; ++i) say(i, i == 5 ? finish::length : finish::none);
  }
  uint64_t malformed() const { return count("lamella_traceparents_malformed_total "); }
  uint64_t count(const std::string& series) const {
    const auto page = metrics->scrape().body;
    return std::stoull(page.substr(page.find("\n" + series) + 1 + series.size()));
  }
};

/// Milliseconds before the end of the request.
std::pair<int64_t, int64_t> times(const net::span& x) {
  const auto before = [](auto t) {
    return std::chrono::duration_cast<milliseconds>(now - t).count();
  };
  return {before(x.from), before(x.to)};
}

const net::span_value& value(const net::span& x, const std::string& key) {
  const auto found =
      std::ranges::find_if(x.attributes, [&](const auto& a) { return a.key == key; });
  REQUIRE_MESSAGE(found != x.attributes.end(), "no attribute " << key);
  return found->value;
}

bool has(const net::span& x, const std::string& key) {
  return std::ranges::any_of(x.attributes, [&](const auto& a) { return a.key == key; });
}

} // namespace

TEST_CASE("a request is one span below its client's, with a child for each stage") {
  world w{parent + "1"};
  w.advance(milliseconds{10});
  w.admit_all();
  w.advance(milliseconds{30});
  w.prefill_all();
  w.advance(milliseconds{60});
  w.finish_from(1);
  REQUIRE(w.book->spans.size() == 5);
  const auto& root = w.book->of("text_completion tiny");
  CHECK(net::hex_of(root.trace) == "4bf92f3577b34da6a3ce929d0e0e4736");
  REQUIRE(root.parent);
  CHECK(net::hex_of(*root.parent) == "00f067aa0ba902b7");
  CHECK(root.parent_is_remote);
  CHECK(root.kind == net::span_kind::server);
  CHECK_FALSE(root.failure);
  CHECK(times(root) == std::pair<int64_t, int64_t>{100, 0});
  REQUIRE(root.events.size() == 1);
  CHECK(root.events.front().name == "first_token");
  CHECK(root.events.front().time == now - milliseconds{60});
  CHECK(times(w.book->of("admission")) == std::pair<int64_t, int64_t>{100, 90});
  CHECK(times(w.book->of("queue")) == std::pair<int64_t, int64_t>{90, 90}); // its worker was idle
  CHECK(times(w.book->of("prefill")) == std::pair<int64_t, int64_t>{90, 60});
  CHECK(times(w.book->of("decode")) == std::pair<int64_t, int64_t>{60, 0});
  for (const auto& x : w.book->spans) {
    CHECK(x.trace == root.trace);
    CHECK(x.state == "a=1");
    if (&x != &root) CHECK(x.parent == root.id);
  }
}

TEST_CASE("a span says of its request what the conventions for generative AI ask") {
  world w{""};
  w.admit_all();
  w.prefill_all();
  w.finish_from(1);
  const auto& root = w.book->of("text_completion");
  CHECK_FALSE(root.parent);
  CHECK(value(root, "gen_ai.operation.name") == net::span_value{"text_completion"});
  CHECK(value(root, "gen_ai.request.model") == net::span_value{"tiny"});
  CHECK(value(root, "gen_ai.request.max_tokens") == net::span_value{int64_t{6}});
  CHECK(value(root, "gen_ai.request.seed") == net::span_value{int64_t{5}});
  CHECK(value(root, "gen_ai.usage.input_tokens") == net::span_value{int64_t{10}});
  CHECK(value(root, "gen_ai.usage.output_tokens") == net::span_value{int64_t{6}});
  CHECK(value(root, "gen_ai.response.finish_reasons")
        == net::span_value{std::vector<std::string>{"length"}});
  CHECK(value(root, "http.route") == net::span_value{"/v1/completions"});
  CHECK(value(root, "http.response.status_code") == net::span_value{int64_t{200}});
  CHECK(value(root, "lamella.outcome") == net::span_value{"done"});
  CHECK_FALSE(has(root, "error.type"));
}

TEST_CASE("a pause by a loss is a span of its own") {
  world w{parent + "1"};
  w.admit_all();
  w.prefill_all();
  w.say(1);
  w.advance(milliseconds{20});
  w.tell(lost_atom_v);
  w.lost_role = "attention";
  w.rebuild();
  w.admit_all();
  w.advance(milliseconds{30});
  w.prefill_all();
  w.say(2);
  w.advance(milliseconds{40});
  w.finish_from(3);
  const auto& pause = w.book->of("recovery");
  CHECK(times(pause) == std::pair<int64_t, int64_t>{90, 40});
  CHECK(value(pause, "lamella.recovery.method") == net::span_value{"recompute"});
  CHECK(value(w.book->of("text_completion"), "lamella.recoveries") == net::span_value{int64_t{1}});
}

TEST_CASE("requests that fail, are refused or are left have spans, too") {
  SUBCASE("refused before anything was computed") {
    world w{parent + "1", 100, std::make_shared<span_book>(), R"(,"top_p":7)"};
    REQUIRE(w.book->spans.size() == 2);
    const auto& root = w.book->of("text_completion");
    CHECK(value(root, "http.response.status_code") == net::span_value{int64_t{400}});
    CHECK(value(root, "lamella.outcome") == net::span_value{"rejected"});
    CHECK(has(root, "error.type"));
    CHECK_FALSE(root.failure); // of the client, not of the server
    CHECK(w.book->of("admission").parent == root.id);
  }
  SUBCASE("left by its client") {
    world w{parent + "1"};
    w.admit_all();
    w.exchange->disconnect();
    w.settle();
    REQUIRE(w.book->spans.size() == 3);
    CHECK(value(w.book->of("text_completion"), "error.type") == net::span_value{"cancelled"});
  }
  SUBCASE("failed") {
    world w{parent + "1"};
    w.admit_all();
    w.prefill_all();
    w.tell(sequence_failed{seq(1), "a reason", w.epoch});
    CHECK(w.book->of("text_completion").failure == "internal_error");
  }
}

TEST_CASE("clients and the share of samples decide which requests have spans") {
  CHECK(world{parent + "0"}.book->spans.empty());
  const auto spans = [](const std::string& traceparent, uint32_t percent, bool open = true) {
    const auto book = std::make_shared<span_book>();
    book->open = open;
    world w{traceparent, percent, book};
    w.admit_all();
    w.prefill_all();
    w.finish_from(1);
    CHECK(w.exchange->status == 200);
    CHECK(w.malformed() == (open && traceparent == "nonsense" ? 1 : 0));
    return book->spans.size();
  };
  CHECK(spans("", 100) == 5);
  CHECK(spans("", 99) == 0); // by the chance of this world
  CHECK(spans("", 0) == 0);
  CHECK(spans(parent + "0", 100) == 0);
  CHECK(spans(parent + "1", 0) == 5);
  CHECK(spans("nonsense", 100) == 5); // ignored, counted, served
  CHECK(spans("nonsense", 0) == 0);
  CHECK(spans(parent + "1", 100, false) == 0);
  CHECK(spans("nonsense", 100, false) == 0);
}

} // namespace lamella::actors::test
