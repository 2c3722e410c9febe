// What /metrics says of a service that has served: nothing that cannot be true.
#include "actors/protocol/prefills.hpp"
#include "tests/actors/worker/joined.hpp"
#include "tests/net/http/raw_client.hpp"

namespace lamella::actors::test {

namespace {

using config::placement;
using lamella::test::raw_client;
using scheduler::worker_role;

/// A page of metrics, its series by their text.
std::map<std::string, double> series_of(const std::string& page) {
  std::map<std::string, double> result;
  for (size_t from = 0; from < page.size();) {
    const auto end = std::min(page.find('\n', from), page.size());
    const auto line = page.substr(from, end - from);
    if (!line.starts_with('#'))
      result[line.substr(0, line.rfind(' '))] = std::stod(line.substr(line.rfind(' ') + 1));
    from = end + 1;
  }
  return result;
}

std::string iterations(const std::string& stage) {
  return "lamella_iteration_seconds_count{stage=\"" + stage + "\"}";
}

std::string live(const std::string& role, const std::string& worker) {
  return "lamella_worker_state{role=\"" + role + "\",state=\"live\",worker=\"" + worker + "\"}";
}

const std::string prompt =
    R"({"model":"tiny","prompt":)" + token_list(40, 1) + R"(,"max_tokens":30,"ignore_eos":true})";

/// Of a service that has answered: each device has worked, everything is loaded and live.
void check_served(std::map<std::string, double> now) {
  for (const char* stage : {"slice", "send", "attention", "combine", "wait"}) {
    CAPTURE(stage);
    CHECK(now[iterations(stage)] > 0);
  }
  for (const char* phase : {"map", "weights", "join", "warm"}) {
    CAPTURE(phase);
    CHECK(now["lamella_load_progress_ratio{phase=\"" + std::string{phase} + "\"}"] == 1);
  }
  CHECK(now["lamella_ready"] == 1);
  CHECK(now[live("model", "model-0")] == 1);
  CHECK(now[live("attention", "attention-0")] == 1);
  CHECK(now.contains("lamella_role_busy_ratio{role=\"attention\",worker=\"attention-0\"}"));
  CHECK(now["lamella_worker_up{role=\"model\",worker=\"model-0\"}"] == 1);
  const auto bucket = [&](const std::string& state) {
    return now["lamella_kv_slots{role=\"attention\",state=\"" + state
               + "\",worker=\"attention-0\"}"];
  };
  CHECK(bucket("free") > 0);
  CHECK(bucket("orphan") == 0);
}

} // namespace

TEST_CASE("A service in one process tells of its devices, its slots and its start") {
  served s;
  REQUIRE(s.post("/v1/completions", prompt).status == 200);
  std::map<std::string, double> now;
  // The devices tell after the last token; the canary is there at times.
  CHECK(eventually([&] {
    now = series_of(s.admin("GET", "/metrics").body);
    return now[iterations("slice")] >= 30 && now["lamella_batches_in_flight"] == 0
           && now["vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"}"] == 0;
  }));
  check_served(now);
  CHECK(now["lamella_heartbeat_age_seconds{role=\"model\",worker=\"model-0\"}"] == 0);
}

TEST_CASE("The usage of KV slots is told while a request holds them") {
  served s;
  const slow_tokens slow;
  raw_client running{s.node().http_port()};
  const auto body = R"({"model":"tiny","prompt":)" + token_list(40, 1)
                    + R"(,"max_tokens":400,"ignore_eos":true})";
  REQUIRE(running.send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: "
                       "application/json\r\ncontent-length: "
                       + std::to_string(body.size()) + "\r\n\r\n" + body));
  CHECK(eventually([&] {
    auto now = series_of(s.admin("GET", "/metrics").body);
    const auto usage = now["vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"}"];
    return usage > 0 && usage < 1
           && usage == now["lamella_kv_usage_ratio{role=\"attention\",worker=\"attention-0\"}"];
  }));
}

TEST_CASE("Workers that have joined tell of their devices in what they report") {
  auto x = tiny_settings();
  x.pools.model.placement = x.pools.attention.placement = placement::remote;
  x.pools.model.threads = x.pools.attention.threads = 1;
  joined j{x};
  j.start([&] {
    j.add(worker_role::model, "m0");
    j.add(worker_role::attention, "a0");
  });
  j.choices_of({prompt});
  std::map<std::string, double> now;
  CHECK(eventually([&] {
    now = series_of(j.call("GET", "/metrics", {}, true).body);
    return now[iterations("slice")] >= 30 && now[iterations("attention")] >= 30;
  }));
  check_served(now);
  CHECK(now["lamella_link_rtt_seconds_count{peer_role=\"attention\",transport=\"shm\"}"] >= 1);
  CHECK(now["lamella_heartbeat_age_seconds{role=\"model\",worker=\"model-0\"}"] >= 0);
  CHECK(now[live("prefill", "prefill-0")] == 1); // of this process
}

} // namespace lamella::actors::test
