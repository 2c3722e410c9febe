// A configuration that is read again while the service serves.
#include "actors/machine/sizing.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/net/http/raw_client.hpp"

#include <fstream>
#include <future>
#include <thread>

namespace lamella::actors::test {
namespace {

/// A node whose configuration a test changes.
struct reloaded {
  config::loaded next; ///< what the next reload reads
  config::log_level level = config::log_level::info;
  served s;

  explicit reloaded(config::settings x = tiny_settings())
      : next{with(x)}, s{std::move(x), [this](actors::node& n) {
                           n.reload_from([this] { return next; },
                                         [this](const auto& taken) { level = taken.log.level; });
                         }} {}

  static config::loaded with(config::settings x) {
    config::loaded made;
    made.value = std::move(x);
    return made;
  }
  /// The status of a request for so many choices.
  int ask(uint32_t choices, const std::string& key = {}) {
    const auto body =
        R"({"model":"tiny","prompt":[3,4,5],"max_tokens":2,"n":)" + std::to_string(choices) + "}";
    net::http_headers headers;
    if (!key.empty()) headers.add("authorization", "Bearer " + key);
    return s.post("/v1/completions", body, headers).status;
  }
};

/// What a file with a mistake in line 3 says.
config::problem mistake(const std::string& key, const std::string& message) {
  config::problem p;
  p.source = "lamella.yaml";
  p.at = {3, 5};
  p.key = key;
  p.message = message;
  return p;
}

using keys = std::vector<std::string>;
using lamella::test::raw_client;

} // namespace

TEST_CASE("A reload changes the rules of requests that come after it, in later pipelines too") {
  auto x = tiny_settings();
  x.limits.max_n = 2;
  reloaded r{x};
  CHECK(r.ask(3) == 400);
  r.next.value.limits.max_n = 3;
  r.next.value.log.level = config::log_level::warn;
  r.next.value.health.iteration_max_age = std::chrono::minutes{2};
  r.next.value.shutdown.drain = std::chrono::seconds{7};
  r.next.value.batching.max_batch = 3;
  const auto report = r.s.node().reload();
  CHECK(report.problems == keys{});
  CHECK(report.applied
        == keys{"limits.max_n", "shutdown.drain_seconds", "health.iteration_max_age_seconds",
                "log.level"});
  CHECK(report.needs_restart == keys{"batching.max_batch"});
  CHECK(r.level == config::log_level::warn);
  CHECK(r.s.node().drain_limit() == std::chrono::seconds{7});
  CHECK(r.s.node().parts().health->beats.max_age() == std::chrono::minutes{2});
  CHECK(r.ask(3) == 200);
  CHECK(r.ask(4) == 400);
  // What needs a restart is told again; what was applied is not.
  CHECK(r.s.node().reload().applied == keys{});
  CHECK(r.s.node().reload().needs_restart == keys{"batching.max_batch"});
  CHECK(r.s.metric("lamella_config_reload_total") == 3);

  const auto epoch = r.s.node().server()->epoch;
  caf::anon_send_exit(r.s.node().pipeline_actors().front(), caf::exit_reason::kill);
  REQUIRE(eventually([&] { return r.s.node().server()->epoch > epoch; }));
  // Asked of the new pipeline: until the gateway has it, requests wait for it.
  CHECK(r.ask(3) == 200);
  CHECK(r.ask(4) == 400);
}

TEST_CASE("V-M15 a reload bounds the queue anew, in later pipelines too") {
  auto x = tiny_settings();
  x.batching.max_batch = 1;
  x.health.iteration_max_age = std::chrono::hours{1}; // no canary takes the seat
  reloaded r{x};
  r.next.value.limits.queue_requests = 1;
  CHECK(r.s.node().reload().applied == keys{"limits.queue_requests"});
  const std::string body = R"({"model":"tiny","prompt":[3,4],"max_tokens":40,"ignore_eos":true})";
  // One runs and one waits for as long as a third asks.
  const auto third = [&] {
    REQUIRE(eventually([&] { return r.s.idle(); })); // no canary, and nobody who has left
    const slow_tokens slow;
    raw_client running{r.s.node().http_port()}, waiting{r.s.node().http_port()};
    REQUIRE(running.send(raw_post(body)));
    REQUIRE(eventually([&] { return r.s.load() == std::pair<uint64_t, uint64_t>{1, 0}; }));
    REQUIRE(waiting.send(raw_post(body)));
    REQUIRE(eventually([&] { return r.s.load() == std::pair<uint64_t, uint64_t>{1, 1}; }));
    return r.ask(1);
  };
  CHECK(third() == 429);
  const auto epoch = r.s.node().server()->epoch;
  caf::anon_send_exit(r.s.node().pipeline_actors().front(), caf::exit_reason::kill);
  REQUIRE(eventually([&] { return r.s.node().server()->epoch > epoch && r.ask(1) == 200; }));
  CHECK(third() == 429);
}

TEST_CASE("A reload takes keys that were added and forgets those that were removed") {
  auto x = tiny_settings();
  tests::scratch_folder folder;
  std::ofstream{folder / "keys"} << "first-key\n";
  x.http.api_keys_file = folder / "keys";
  reloaded r{x};
  CHECK(r.ask(1) == 401);
  CHECK(r.ask(1, "first-key") == 200);
  std::ofstream{folder / "keys"} << "second-key\nthird-key\n";
  CHECK(r.ask(1, "second-key") == 401);
  const auto report = r.s.node().reload();
  CHECK(report.applied == keys{}); // the file is the same
  CHECK(report.api_keys == 2);
  CHECK(report.admin_keys == 0);
  CHECK(r.ask(1, "first-key") == 401);
  CHECK(r.ask(1, "second-key") == 200);
  CHECK(r.ask(1, "third-key") == 200);
  SUBCASE("a file that cannot be read leaves them as they are") {
    std::ofstream{folder / "keys"} << "short\n";
    const auto broken = r.s.node().reload();
    REQUIRE(broken.problems.size() == 1);
    CHECK(broken.problems.front().find("keys:1: an API key must have 8 to 256")
          != std::string::npos);
    CHECK(r.ask(1, "second-key") == 200);
  }
}

TEST_CASE("A reload with a mistake changes nothing and says what is wrong") {
  auto x = tiny_settings();
  x.limits.max_n = 2;
  x.http.listen = "0.0.0.0:0"; // only with keys, and only a restart changes it
  tests::scratch_folder folder;
  std::ofstream{folder / "keys"} << "first-key\n";
  x.http.api_keys_file = folder / "keys";
  reloaded r{x};
  r.next.value.limits.max_n = 8;
  std::string part;
  SUBCASE("in the file") {
    r.next.problems.push_back(mistake("limits.best_of", "999 is not 1 to 128"));
    part = "lamella.yaml:3:5: limits.best_of: 999 is not 1 to 128";
  }
  SUBCASE("together with what only a restart would change") {
    r.next.value.http.listen = "127.0.0.1:0";
    r.next.value.http.api_keys_file.clear();
    part = "http.api_keys_file is not set";
  }
  const auto report = r.s.node().reload();
  REQUIRE(report.problems.size() == 1);
  CHECK_MESSAGE(report.problems.front().find(part) != std::string::npos, report.problems.front());
  CHECK(report.applied == keys{});
  CHECK(r.ask(3, "first-key") == 400);
  CHECK(r.ask(1) == 401);
  CHECK(r.ask(2, "first-key") == 200);
  const auto page = r.s.node().parts().metrics->scrape().body;
  CHECK(page.find("lamella_config_reload_total{result=\"error\"} 1") != std::string::npos);
}

TEST_CASE("One reload at a time; who asked may leave, and the service may end meanwhile") {
  std::promise<void> begun, released;
  std::optional<served> s;
  s.emplace(tiny_settings(), [&](actors::node& n) {
    n.reload_from([&, release = released.get_future().share()] {
      begun.set_value();
      release.wait();
      return reloaded::with(tiny_settings());
    });
  });
  const std::string post = "POST /admin/reload HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
  auto asks = std::make_unique<raw_client>(s->node().admin_port());
  REQUIRE(asks->send(post));
  begun.get_future().wait();
  CHECK(s->admin("POST", "/admin/reload").status == 409);
  SUBCASE("it ends well") {
    released.set_value();
    CHECK(eventually([&] { return s->metric("lamella_config_reload_total") == 1; }));
  }
  SUBCASE("nobody waits for it any more") {
    asks.reset();
    released.set_value();
    CHECK(eventually([&] { return s->metric("lamella_config_reload_total") == 1; }));
    CHECK(s->get("/ready").status == 200);
  }
  SUBCASE("the service ends") { // sooner or later than the reload
    std::thread releases{[&] { released.set_value(); }};
    s.reset();
    releases.join();
  }
}

TEST_CASE("A service that drains takes no other configuration") {
  reloaded r;
  r.next.value.limits.max_n = 5;
  CHECK(r.s.node().drain(std::chrono::milliseconds{0}));
  const auto report = r.s.node().reload();
  CHECK(report.problems == keys{"the service is draining"});
  CHECK(report.passing);
}

TEST_CASE("POST /admin/reload answers with what it has done") {
  reloaded r;
  r.next.value.limits.max_n = 5;
  r.next.value.model.name = "another";
  const auto done = r.s.admin("POST", "/admin/reload");
  CHECK(done.status == 200);
  CHECK(done.body
        == R"({"version":1,"applied":["limits.max_n"],"pending":[],"needs_restart":["model.name"],)"
           R"("api_keys":0,"admin_keys":0})");
  CHECK(r.s.admin("GET", "/admin/reload").status == 405);
  r.next.problems.push_back(mistake("limits.max_n", "0 is not 1 to 128"));
  const auto refused = r.s.admin("POST", "/admin/reload");
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.message")
        == "nothing was reloaded: lamella.yaml:3:5: limits.max_n: 0 is not 1 to 128");
  CHECK(r.ask(5) == 200);
}

TEST_CASE(
    "A reload changes the sizes of pools, one after the other, and says that they are pending") {
  reloaded r;
  r.next.value.pools.model.members = 2;
  r.next.value.pools.attention.members = 3;
  r.next.value.limits.max_n = 5;
  const auto report = r.s.node().reload();
  CHECK(report.problems == keys{});
  CHECK(report.applied == keys{"limits.max_n"});
  CHECK(report.pending == keys{"pools.model.members", "pools.attention.members"});
  CHECK(report.needs_restart == keys{});
  const auto is_done = [&](const std::string& pool) {
    const auto now = r.s.admin("GET", "/admin/pools");
    return text_at(now.json, "pools." + pool + ".state") == "done"
           && int_at(now.json, "pools." + pool + ".members") == (pool == "0" ? 2 : 3);
  };
  CHECK(eventually([&] { return is_done("0") && is_done("1"); }));
  CHECK(r.ask(5) == 200);
  // The sizes of the start are not those that hold.
  CHECK(r.s.node().reload().pending == keys{});
}

TEST_CASE("A reload that only the moment forbids is refused with 409, to be tried again") {
  reloaded r;
  auto& members = r.next.value.pools.attention.members;
  auto now = r.s.admin("GET", "/admin/pools");
  // One after the other, until one comes while the change of the one before is under way.
  REQUIRE(eventually([&] {
    members = members == 3 ? 1 : 3;
    now = r.s.admin("POST", "/admin/reload");
    return now.status == 409;
  }));
  CHECK(text_at(now.json, "error.code") == "reload_refused");
  CHECK(at(now.json, "error.lamella.retryable") == json_value{true});
  CHECK(text_at(now.json, "error.message").find("still under way") != std::string::npos);
  CHECK(eventually([&] { return r.s.admin("POST", "/admin/reload").status == 200; }));
}

TEST_CASE("A service that ends while a pool changes its size ends as any other") {
  for (int looks = 0; looks < 12; ++looks) {
    reloaded r;
    r.next.value.pools.attention.members = 3;
    CHECK(r.s.node().reload().pending == keys{"pools.attention.members"});
    for (int i = 0; i < looks; ++i)
      r.s.admin("GET", "/admin/pools"); // it ends a bit later each time
  }
}

TEST_CASE("A size that a pool cannot have is a problem, and nothing is reloaded") {
  auto x = tiny_settings();
  x.limits.max_n = 2;
  reloaded r{x};
  r.next.value.limits.max_n = 8;
  r.next.value.pools.attention.members = 2; // by heads, of which the tiny model has three
  SUBCASE("alone") {}
  SUBCASE("behind another that the service can have") { r.next.value.pools.model.members = 2; }
  const auto report = r.s.node().reload();
  REQUIRE(report.problems.size() == 1);
  CHECK_MESSAGE(report.problems.front().starts_with("pools.attention.members: "),
                report.problems.front());
  CHECK_FALSE(report.passing);
  CHECK(report.applied == keys{});
  CHECK(report.pending == keys{});
  CHECK(r.ask(3) == 400);
  const auto now = r.s.admin("GET", "/admin/pools");
  CHECK(text_at(now.json, "pools.0.state") == "none");
  CHECK(text_at(now.json, "pools.1.state") == "none");
}

TEST_CASE("KV that the memory cannot hold is refused with the sizes of weights and KV") {
  if (memory_limit() > uint64_t{1} << 39) {
    MESSAGE("skipped: this machine has room for the largest KV cache of the tiny model");
    return;
  }
  reloaded r;
  r.next.value.kv.bytes = uint64_t{1} << 40; // a table has 2^30 slots at most, of 576 bytes each
  const auto report = r.s.node().reload();
  REQUIRE(report.problems.size() == 1);
  CHECK_MESSAGE(report.problems.front().starts_with("kv.bytes: the weights ("),
                report.problems.front());
  CHECK(report.problems.front().find("(0 bytes)") == std::string::npos);
}

} // namespace lamella::actors::test
