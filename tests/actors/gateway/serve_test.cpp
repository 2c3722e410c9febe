// Many clients at once, clients that leave or do not read, and a service that ends.
#include "actors/node/pipeline_parts.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/net/http/raw_client.hpp"

#include <atomic>
#include <fstream>

namespace lamella::actors::test {

using namespace std::chrono_literals;

using lamella::test::raw_client;

namespace {

std::string body_of(uint32_t i, uint32_t max_tokens, bool stream = false) {
  return R"({"model":"tiny","prompt":)" + token_list(5 + i % 60, i + 1) + R"(,"max_tokens":)"
         + std::to_string(max_tokens) + R"(,"ignore_eos":true,"seed":)" + std::to_string(i)
         + (stream ? R"(,"stream":true})" : "}");
}

/// A question whose answer is longer than what the kernel keeps for a reader.
std::string question_of_long_answer() {
  std::string words;
  for (size_t i = 0; i < size_t{256} << 10; ++i) words += "x ";
  return raw_post(R"({"model":"tiny","return_token_strs":true,"prompt":")" + words + R"("})",
                  "/tokenize");
}

constexpr int small_buffer = 4 << 10; ///< of a reader

/// Text of choice 0 in a stream of events.
std::string text_of_events(std::string_view bytes, bool& complete) {
  std::string text;
  for (size_t from = 0; (from = bytes.find("data: ", from)) != std::string_view::npos;) {
    from += 6;
    const auto data = bytes.substr(from, bytes.find("\n\n", from) - from);
    if (data == "[DONE]")
      complete = true;
    else
      text += text_at(parse_json(data), "choices.0.text");
  }
  return text;
}

/// One worker and few slots in a queue make it easy to fill everything.
config::settings narrow_settings() {
  auto x = tiny_settings();
  x.batching.max_batch = 2;
  x.limits.queue_requests = 2;
  return x;
}

} // namespace

// Through all roles: request, global scheduler, KV allocator, prefill worker, batch, model replica
// and attention shard.
TEST_CASE("L-M30 64 streams at once have the tokens they get alone, and leave nothing behind") {
  served s;
  const auto actors_idle = s.node().system().registry().running();
  std::vector<std::string> alone;
  for (uint32_t i = 0; i < 64; ++i) {
    const auto x = s.post("/v1/completions", body_of(i, 64));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    alone.push_back(text_at(x.json, "choices.0.text"));
  }
  net::http_client_loop loop;
  std::vector<std::string> bytes(64);
  std::atomic<int> done{0};
  for (uint32_t i = 0; i < 64; ++i) {
    net::http_call_request x;
    x.method = "POST";
    x.path = "/v1/completions";
    x.body = body_of(i, 64, true);
    x.connect_timeout = x.idle_timeout = deadline;
    net::http_call_events on;
    on.on_data = [&bytes, i](std::string_view piece) { bytes[i] += piece; };
    on.on_done = [&done](const net::http_reply&) { ++done; };
    on.on_error = [](const net::http_call_error& e) { FAIL_CHECK(e.what()); };
    loop.call(s.url(), std::move(x), std::move(on));
  }
  loop.run();
  CHECK(done == 64);
  for (size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    bool complete = false;
    CHECK(text_of_events(bytes[i], complete) == alone[i]);
    CHECK(complete);
  }
  CHECK(eventually([&] { return s.idle(); }));
  CHECK(eventually([&] { return s.node().system().registry().running() <= actors_idle; }));
  CHECK(eventually([&] { // the canary is there at times
    const auto status = s.admin("GET", "/admin/status");
    return status.status == 200 && int_at(status.json, "pools.0.slots.used") == 0
           && int_at(status.json, "requests.running") == 0
           && int_at(status.json, "requests.waiting") == 0;
  }));
  CHECK(s.metric("vllm:num_requests_running") == 0);
  CHECK(s.metric("lamella_requests_total") == 128);
}

TEST_CASE("A client that leaves frees its slots in every state") {
  auto x = tiny_settings();
  x.batching.max_batch = 1;            // the second one queues
  x.batching.prefill_chunk_tokens = 1; // a long prompt stays in prefill for a while
  served s{x};
  SUBCASE("while queued") {
    const slow_tokens slow;
    raw_client running{s.node().http_port()}, queued{s.node().http_port()};
    REQUIRE(running.send(raw_post(body_of(1, 400))));
    REQUIRE(eventually([&] { return s.load().first == 1; }));
    REQUIRE(queued.send(raw_post(body_of(2, 400))));
    REQUIRE(eventually([&] { return s.load().second == 1; }));
    queued.reset();
    CHECK(eventually([&] { return s.load().second == 0; }));
    running.close();
  }
  SUBCASE("while its prompt is filled in") {
    const armed slow{"prefill.chunk=1:delay:500"};
    raw_client client{s.node().http_port()};
    REQUIRE(client.send(
        raw_post(R"({"model":"tiny","prompt":)" + token_list(450, 1) + R"(,"max_tokens":5})")));
    REQUIRE(eventually([&] { return s.load().first == 1; }));
    client.reset();
  }
  SUBCASE("while tokens come") {
    const slow_tokens slow;
    raw_client client{s.node().http_port()};
    REQUIRE(client.send(raw_post(body_of(1, 400, true))));
    client.read_until("data: ");
    client.reset();
  }
  SUBCASE("when the last token has just come") {
    raw_client client{s.node().http_port()};
    REQUIRE(client.send(raw_post(body_of(1, 2, true))));
    client.read_until("finish_reason\":\"length\"");
    client.reset();
  }
  SUBCASE("before anything came") {
    for (int i = 0; i < 20; ++i) {
      raw_client client{s.node().http_port()};
      REQUIRE(client.send(raw_post(body_of(static_cast<uint32_t>(i), 100, i % 2 == 0))));
      client.reset();
    }
  }
  const auto idle = eventually([&] { return s.idle(); });
  CHECK(idle);
  const auto after = s.post("/v1/completions", body_of(7, 5));
  CHECK(after.status == 200);
}

TEST_CASE("A reader that never reads delays nobody else") {
  auto x = tiny_settings();
  x.http.stream_buffer_bytes = 4096;
  x.http.stream_stall = deadline;
  served s{x};
  std::vector<std::unique_ptr<raw_client>> mute;
  for (uint32_t i = 0; i < 4; ++i) {
    mute.push_back(std::make_unique<raw_client>(s.node().http_port(), 2048));
    // Many choices with log probabilities: far more bytes than the sockets hold.
    REQUIRE(mute.back()->send(raw_post(
        R"({"model":"tiny","messages":[{"role":"user","content":"x"}],"max_tokens":400,"n":8,)"
        R"("ignore_eos":true,"stream":true,"logprobs":true,"top_logprobs":20})",
        "/v1/chat/completions")));
  }
  REQUIRE(eventually([&] { return s.metric("vllm:generation_tokens_total") > 0; }));
  for (uint32_t i = 0; i < 8; ++i) {
    const auto got = s.post("/v1/completions", body_of(i, 20));
    CHECK(got.status == 200);
    CHECK(int_at(got.json, "usage.completion_tokens") == 20);
  }
  // Those that do not read keep their text, and where more is to come after some seconds their
  // slots; no seat.
  CHECK(eventually([&] { return s.load() == std::pair<uint64_t, uint64_t>{0, 0}; }));
  // A slow reader gets all of it in the end.
  CHECK(mute.front()->read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
  CHECK(mute.front()->read_chunks().ends_with("data: [DONE]\n\n"));
  mute.clear();
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("A2 gateway, slow: a full queue answers 429 with retry-after, and /ready says why") {
  served s{narrow_settings()};
  std::optional<slow_tokens> slow{std::in_place};
  std::vector<std::unique_ptr<raw_client>> clients;
  for (uint32_t i = 0; i < 4; ++i) { // two run, two wait
    clients.push_back(std::make_unique<raw_client>(s.node().http_port()));
    REQUIRE(clients.back()->send(raw_post(body_of(i, 440))));
    const std::pair<uint64_t, uint64_t> wanted{std::min(i + 1, 2u), i < 2 ? 0 : i - 1};
    REQUIRE(eventually([&] { return s.load() == wanted; }));
  }
  const auto refused = s.post("/v1/completions", body_of(9, 5));
  CHECK(refused.status == 429);
  CHECK(text_at(refused.json, "error.code") == "queue_full");
  CHECK(refused.headers.find("retry-after") != nullptr);
  CHECK(s.metric("lamella_admission_rejected_total") == 1);
  for (auto& x : clients) x->close();
  slow.reset();
  CHECK(eventually([&] { return s.idle(); }));
  CHECK(eventually([&] { return s.get("/ready").status == 200; }));
}

TEST_CASE("A drain lets running requests finish and refuses new ones") {
  served s;
  std::optional<slow_tokens> slow{std::in_place};
  raw_client running{s.node().http_port()};
  REQUIRE(running.send(raw_post(body_of(1, 440, true))));
  running.read_until("\r\n\r\n");
  raw_client kept{s.node().http_port()}; // an idle connection that wakes up too late
  bool complete = false;
  std::thread drains{[&] { complete = s.node().drain(deadline); }};
  CHECK(eventually([&] { return s.get("/ready").status == 503; }));
  CHECK(text_at(s.get("/ready").json, "status") == "draining");
  std::string late;
  if (kept.send(raw_post(body_of(2, 5)))) late = kept.read_answer();
  slow.reset();
  drains.join();
  CHECK(complete);
  if (!late.empty()) {
    CHECK(late.find(" 503 ") != std::string::npos);
    CHECK(late.find("\"draining\"") != std::string::npos);
    CHECK(late.find("retry-after") != std::string::npos);
  }
  CHECK(running.read_chunks().ends_with("data: [DONE]\n\n"));
}

TEST_CASE("A drain waits until a slow reader has taken an answer that is complete") {
  served s;
  raw_client slow{s.node().http_port(), small_buffer};
  REQUIRE(slow.send(question_of_long_answer()));
  slow.read_until("\r\n\r\n");
  std::atomic<bool> over{false};
  bool complete = false;
  std::thread drains{[&] {
    complete = s.node().drain(deadline);
    over = true;
  }};
  std::this_thread::sleep_for(1s); // longer than what is left to open exchanges in any case
  CHECK_FALSE(over);
  CHECK(slow.read_all().ends_with("]}"));
  drains.join();
  CHECK(complete);
}

TEST_CASE("A drain in which a reader takes nothing ends at its limit, and is not complete") {
  served s;
  raw_client stuck{s.node().http_port(), small_buffer};
  REQUIRE(stuck.send(question_of_long_answer()));
  stuck.read_until("\r\n\r\n");
  CHECK_FALSE(s.node().drain(100ms));
}

TEST_CASE("A drain that is hurried ends what runs with an error event") {
  auto x = tiny_settings();
  x.batching.prefill_chunk_tokens = 1;
  served s{x};
  const slow_tokens slow;
  std::vector<std::unique_ptr<raw_client>> clients;
  for (uint32_t i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<raw_client>(s.node().http_port()));
    REQUIRE(clients.back()->send(raw_post(body_of(i, 440, true))));
  }
  REQUIRE(eventually([&] { return s.load().first == 8; }));
  bool complete = true;
  std::thread drains{[&] { complete = s.node().drain(600s); }};
  s.node().hurry(); // the second signal
  drains.join();
  CHECK_FALSE(complete);
  for (auto& client : clients) CHECK(client->read_all().find("[DONE]") == std::string::npos);
}

TEST_CASE("The admin listener drains and shows the status; the public one knows neither") {
  std::atomic<int> ends{0};
  auto settings = tiny_settings();
  actors::node n{settings};
  n.on_end([&](bool failed) { ends += failed ? 100 : 1; });
  n.start([](const std::string&, uint64_t, uint64_t) {});
  net::http_client front{{"127.0.0.1", n.http_port(), ""}};
  net::http_client admin{{"127.0.0.1", n.admin_port(), ""}};
  CHECK(front.get("/admin/status", deadline).status == 404);
  CHECK(front.post("/admin/drain", "", deadline).status == 404);
  CHECK(admin.get("/admin/drain", deadline).status == 405);
  CHECK(eventually([&] { // the canary's slot comes back
    const auto status = answer_of(admin.get("/admin/status", deadline));
    return status.status == 200 && size_at(status.json, "workers") == 3
           && int_at(status.json, "pools.0.slots.free") == n.server()->slots;
  }));
  CHECK(admin.get("/metrics", deadline).status == 200);
  CHECK(ends == 0);
  CHECK(admin.post("/admin/drain", "", deadline).status == 202);
  CHECK(eventually([&] { return ends == 1; }));
  CHECK(n.drain(deadline));
}

TEST_CASE("probes, and what the HTTP server answers itself, are in the metrics") {
  served s;
  CHECK(s.get("/ready").status == 200);
  raw_client noise{s.node().http_port()};
  REQUIRE(noise.send("GET /ready HTTP/1.1\r\n\r\n")); // without a host
  CHECK(noise.read_all().find(" 400 ") != std::string::npos);
  {
    raw_client leaves{s.node().http_port(), small_buffer};
    REQUIRE(leaves.send(question_of_long_answer()));
    leaves.read_until("\r\n\r\n");
    CHECK(s.get("/metrics").status == 200);
    CHECK(s.metric("lamella_http_answer_bytes") > 512 << 10);
    CHECK(s.metric("lamella_http_requests_open") >= 2); // and that of the metrics
  }
  CHECK(eventually([&] {
    return s.get("/metrics").status == 200 && s.metric("lamella_http_answer_bytes") == 0
           && s.metric("lamella_http_disconnects_total") == 1;
  }));
  CHECK(s.metric("lamella_http_errors_total") == 1);
  CHECK(s.metric("lamella_http_connections_total") >= 5);
  CHECK(s.metric("lamella_http_connections_open") >= 1);
  const auto page = s.node().parts().metrics->scrape().body;
  CHECK(page.find(R"(http_requests_total{handler="/ready",method="GET",status="2xx"} 1)")
        != std::string::npos);
}

TEST_CASE("Keys are asked for where they are configured") {
  tests::scratch_folder folder;
  const auto file = folder / "keys";
  std::ofstream{file} << "# a comment\nkey-of-a-client\n";
  auto x = tiny_settings();
  x.http.api_keys_file = file;
  served s{x};
  const auto body = body_of(1, 2);
  const auto none = s.post("/v1/completions", body);
  CHECK(none.status == 401);
  CHECK(text_at(none.json, "error.code") == "invalid_api_key");
  CHECK(s.post("/v1/completions", body, {{"authorization", "Bearer wrong-key-here"}}).status
        == 401);
  CHECK(s.post("/v1/completions", body, {{"authorization", "Bearer key-of-a-client"}}).status
        == 200);
  CHECK(s.post("/v1/completions", body, {{"api-key", "key-of-a-client"}}).status == 200);
  CHECK(s.get("/v1/models").status == 401);
  CHECK(s.get("/ready").status == 200);
  CHECK(s.get("/metrics").status == 200);
}

TEST_CASE("Probes and metrics are on the admin listener alone where http.probes is off") {
  auto x = tiny_settings();
  x.http.probes = false;
  served s{x};
  net::http_client admin{s.admin_url()};
  for (const char* path : {"/live", "/ready", "/health", "/metrics", "/v2/health/ready"}) {
    CAPTURE(path);
    CHECK(s.get(path).status == 404);
    CHECK(admin.get(path, deadline).status == 200);
  }
  CHECK(s.get("/v1/models").status == 200);
}

TEST_CASE("/ready is 503 while loading and follows the canary's beat afterwards") {
  auto x = tiny_settings();
  x.health.iteration_max_age = 200ms;
  std::vector<int> while_loading;
  int early_status = 0;
  actors::node n{x};
  n.start([&](const std::string& phase, uint64_t done, uint64_t) {
    if (phase != "warm" || done != 0) return;
    net::http_client client{{"127.0.0.1", n.http_port(), ""}};
    while_loading.push_back(client.get("/ready", deadline).status);
    while_loading.push_back(client.get("/live", deadline).status);
    const auto early = answer_of(client.post("/v1/completions", body_of(1, 2), deadline));
    // The pipeline may already be there, but then its answer is whole.
    early_status = early.status;
  });
  CHECK(while_loading == std::vector<int>{503, 200});
  CHECK((early_status == 200 || early_status == 503));
  net::http_client client{{"127.0.0.1", n.http_port(), ""}};
  // Nobody asks for anything: the canary alone keeps it ready, for many times its interval.
  const auto answers = [&] {
    const auto page = client.get("/metrics", deadline).body;
    std::string lines;
    for (size_t at = 0; (at = page.find("\nlamella_requests_total{", at)) != std::string::npos;
         ++at)
      lines += page.substr(at, page.find('\n', at + 1) - at);
    return lines;
  };
  // The early request is in there: what was answered has been counted.
  const auto counted = answers();
  const auto beats = n.parts().health->beats.count();
  CHECK(eventually([&] { return n.parts().health->beats.count() >= beats + 5; }));
  CHECK(eventually([&] { return client.get("/ready", deadline).status == 200; }));
  CHECK(eventually([&] { return client.get("/health", deadline).status == 200; }));
  CHECK_FALSE(counted.empty());
  CHECK(answers() == counted); // canaries are no requests
}

} // namespace lamella::actors::test
