// Actors of the pipeline end under load: every request still ends with the tokens of an undisturbed
// run, and a pipeline that cannot be kept alive ends the process.
#include "actors/protocol/epochs.hpp"
#include "tests/actors/gateway/served.hpp"

#include <atomic>
#include <set>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

std::vector<std::string> bodies(uint32_t count, uint32_t max_tokens) {
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(R"({"model":"tiny","prompt":)" + token_list(3 + 7 * i, i + 1)
                     + R"(,"max_tokens":)" + std::to_string(max_tokens)
                     + R"(,"ignore_eos":true,"logprobs":1,"seed":)" + std::to_string(i)
                     + (i % 3 == 0 ? R"(,"n":2})" : "}"));
  return result;
}

std::string name_of(const caf::strong_actor_ptr& x) {
  return static_cast<caf::local_actor*>(caf::actor_cast<caf::abstract_actor*>(x))->name();
}

/// Ends the first actor of that name, of the pipeline or of a WORKER.
void kill(actors::node& n, const std::string& name) {
  auto all = n.pipeline_actors();
  for (const auto& x : worker_parts(n)) all.push_back(x);
  for (const auto& x : all)
    if (name_of(x) == name) {
      caf::anon_send_exit(x, caf::exit_reason::kill);
      return;
    }
  FAIL("no actor " << name);
}

} // namespace

TEST_CASE("Whatever actor of the pipeline ends, running requests end with their own tokens") {
  const auto wanted = bodies(12, 300);
  auto settings = tiny_settings();
  settings.pools.attention.members = 3;
  std::vector<json_value> undisturbed;
  {
    served s{settings};
    for (const auto& x : s.post_all("/v1/completions", wanted)) {
      REQUIRE_MESSAGE(x.status == 200, x.body);
      undisturbed.push_back(at(x.json, "choices"));
    }
  }
  served s{settings}; // one node for all: the restarts stay below the policy
  uint64_t epoch = 1;
  for (const char* victim : {"attention_shard", "model_replica", "batch", "global_scheduler"}) {
    CAPTURE(victim);
    std::vector<answer> answers;
    std::optional<slow_tokens> slow{100ms};
    std::thread client{[&] { answers = s.post_all("/v1/completions", wanted); }};
    const auto before = s.metric("vllm:iteration_tokens_total_count");
    CHECK(eventually([&] { return s.load().first > 12; }));
    CHECK(eventually([&] { return s.metric("vllm:iteration_tokens_total_count") > before + 15; }));
    CHECK(s.load().first > 0); // still running
    kill(s.node(), victim);
    slow.reset();
    client.join();
    ++epoch;
    CHECK(eventually([&] { return s.node().server()->epoch == epoch; }));
    for (size_t i = 0; i < answers.size(); ++i) {
      CAPTURE(i);
      CHECK_MESSAGE(answers[i].status == 200, answers[i].body);
      CHECK(at(answers[i].json, "choices") == undisturbed[i]);
    }
    CHECK(eventually([&] { return s.idle(); }));
  }
  CHECK(s.metric("lamella_failovers_total") == 4);
  CHECK(eventually([&] { return s.get("/ready").status == 200; }));
}

TEST_CASE("L-M25 in one process too only what a failed WORKER held is lost") {
  auto settings = tiny_settings();
  settings.pools.attention.members = 3;
  served s{settings};
  const auto& now = s.node().parts().workers;
  const auto empty_after = [&](const char* victim) {
    const auto epoch = s.node().server()->epoch;
    kill(s.node(), victim);
    CHECK(eventually([&] { return s.node().server()->epoch > epoch && s.idle(); }));
    return now->empty;
  };
  CHECK(now->empty == std::vector<uint32_t>{0, 1, 2}); // of the first epoch
  CHECK(empty_after("model_replica").empty());
  CHECK(empty_after("batch").empty());
  CHECK(empty_after("attention_shard") == std::vector<uint32_t>{0});
}

namespace {

/// Sockets that this process has open.
size_t sockets() {
  size_t count = 0;
  for (const auto& x : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    count += std::filesystem::read_symlink(x.path(), gone).string().starts_with("socket:") ? 1 : 0;
  }
  return count;
}

} // namespace

TEST_CASE("A service whose pools are all in its process opens no socket but those of its clients") {
  const auto before = sockets();
  actors::node n{tiny_settings(), false};
  n.start([](const std::string&, uint64_t, uint64_t) {});
  CHECK(n.control_port() == 0);
  CHECK(sockets() == before);
}

TEST_CASE("A8 a seat of this process that cannot open an epoch ends the process, in time") {
  const armed one{"worker.epoch_open=1:error"};
  std::atomic<int> ends{0};
  actors::node n{tiny_settings()};
  n.on_end([&](bool failed) { ends += failed ? 100 : 1; });
  try {
    n.start([](const std::string&, uint64_t, uint64_t) {});
    FAIL("it started");
  } catch (const start_error& e) {
    CHECK(e.exit_code == 70);
  }
  CHECK(ends == 100);
}

TEST_CASE("A pipeline that ends again and again ends the process, and nobody waits for ever") {
  std::atomic<int> ends{0};
  actors::node n{tiny_settings()};
  n.on_end([&](bool failed) { ends += failed ? 100 : 1; });
  n.start([](const std::string&, uint64_t, uint64_t) {});
  std::atomic<int> status{0};
  std::thread client{[&] {
    net::http_client c{{"127.0.0.1", n.http_port(), ""}};
    try {
      status =
          c.post("/v1/completions",
                 R"({"model":"tiny","prompt":"x","max_tokens":500,"ignore_eos":true})", deadline)
              .status;
    } catch (const net::http_call_error& e) { // a drain of no time cuts whom it cannot answer
      status = e.why == net::http_call_error::reason::cut ? 503 : -1;
    }
  }};
  for (uint64_t epoch = 1; ends == 0 && epoch < 20; ++epoch) {
    CHECK(eventually([&] { return ends > 0 || n.server()->epoch == epoch; }));
    if (ends == 0) kill(n, "batch");
    CHECK(eventually([&] { return ends > 0 || n.server()->epoch > epoch; }));
  }
  CHECK(ends == 100);
  net::http_client c{{"127.0.0.1", n.http_port(), ""}};
  CHECK(c.get("/live", deadline).status == 503);
  n.drain(0ms); // what the service does then
  client.join();
  CHECK((status == 503 || status == 200));
}

TEST_CASE("A2 membership, gateway, supervisor, crash: the process ends, it cannot serve any more") {
  for (const char* victim : {"membership", "gateway", "supervisor"}) {
    CAPTURE(victim);
    std::atomic<int> ends{0};
    actors::node n{tiny_settings()};
    n.on_end([&](bool failed) { ends += failed ? 100 : 1; });
    n.start([](const std::string&, uint64_t, uint64_t) {});
    net::http_client c{{"127.0.0.1", n.http_port(), ""}};
    CHECK(c.get("/live", deadline).status == 200);
    size_t found = 0;
    for (const auto& x : n.vital_actors())
      if (x.name == victim) {
        ++found;
        caf::anon_send_exit(x.handle, caf::exit_reason::kill);
      }
    CHECK(found == 1);
    CHECK(eventually([&] { return ends == 100; }));
    CHECK(c.get("/live", deadline).status == 503);
    CHECK(c.get("/ready", deadline).status == 503);
    n.drain(0ms);
    CHECK(ends == 100); // told once
  }
}

} // namespace lamella::actors::test
