// Replicas, shards and prefill workers that have joined over the middleman: the same tokens as in
// one process, also when a worker goes and another one comes; whoever does not belong is sent away.
#include "actors/protocol/prefills.hpp"
#include "tests/actors/worker/joined.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

using config::placement;
using scheduler::worker_role;

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

config::settings remote_settings(uint32_t replicas, uint32_t shards, uint32_t prefill) {
  auto x = tiny_settings();
  x.pools.model.members = replicas;
  x.pools.attention.members = shards;
  x.pools.prefill.members = prefill;
  x.pools.model.placement = x.pools.attention.placement = placement::remote;
  x.pools.prefill.placement = placement::remote;
  x.pools.model.threads = x.pools.attention.threads = x.pools.prefill.threads = 1;
  return x;
}

std::vector<json_value> undisturbed(const std::vector<std::string>& wanted) {
  served s;
  std::vector<json_value> result;
  for (const auto& x : s.post_all("/v1/completions", wanted)) {
    REQUIRE_MESSAGE(x.status == 200, x.body);
    result.push_back(at(x.json, "choices"));
  }
  return result;
}

/// The part of status that names who sits where.
const json_value* worker_at(const json_value& status, const std::string& seat, json_value& keep) {
  for (size_t i = 0; i < size_at(status, "workers"); ++i) {
    keep = at(status, "workers." + std::to_string(i));
    if (text_at(keep, "seat") == seat) return &keep;
  }
  return nullptr;
}

/// Members of a pool, as it is in force.
int members_of(joined& j, const std::string& pool) {
  const auto page = j.call("GET", "/metrics", {}, true).body;
  const auto name = "\nlamella_pool_members{pool=\"" + pool + "\"} ";
  const auto at = page.find(name);
  return at == std::string::npos ? -1 : std::stoi(page.substr(at + name.size()));
}

/// By all workers of a role to all their peers.
int64_t bytes_sent(const json_value& status, const std::string& role) {
  int64_t sum = 0;
  for (size_t i = 0; i < size_at(status, "workers"); ++i) {
    const auto worker = at(status, "workers." + std::to_string(i));
    if (text_at(worker, "role") != role) continue;
    for (size_t p = 0; p < size_at(worker, "peers"); ++p)
      sum += int_at(worker, "peers." + std::to_string(p) + ".bytes");
  }
  return sum;
}

} // namespace

TEST_CASE("Two replicas, three shards and a prefill worker that joined give one process's tokens") {
  const auto wanted = bodies(12, 40);
  const auto expected = undisturbed(wanted);
  joined j{remote_settings(2, 3, 1)};
  j.start([&] {
    // Until they come, the service says what it waits for.
    const auto before = j.call("GET", "/ready");
    CHECK(before.status == 503);
    CHECK(text_at(before.json, "reason").find("model/1") != std::string::npos);
    CHECK(text_at(before.json, "reason").find("prefill/0") != std::string::npos);
    j.status_when([](const json_value&) { return true; });
    CHECK(j.call("POST", "/v1/completions", wanted[0]).status == 503);
    for (int i = 0; i < 2; ++i) j.add(worker_role::model, "m" + std::to_string(i));
    for (int i = 0; i < 3; ++i) j.add(worker_role::attention, "a" + std::to_string(i));
    j.add(worker_role::prefill, "p0");
  });
  CHECK(j.choices_of(wanted) == expected);
  // K and V of prompts are what prefill workers send: shards have pulled them.
  const auto status = j.status_when([](const json_value& x) {
    bool all = size_at(x, "workers") == 6 && bytes_sent(x, "prefill") > 0;
    for (int i = 0; i < 6; ++i)
      all = all && size_at(x, "workers." + std::to_string(i) + ".peers") > 0;
    return all;
  });
  REQUIRE(size_at(status, "workers") == 6);
  for (const char* seat :
       {"model/0", "model/1", "attention/0", "attention/1", "attention/2", "prefill/0"}) {
    CAPTURE(seat);
    json_value keep;
    const auto* w = worker_at(status, seat, keep);
    REQUIRE(w != nullptr);
    CHECK(text_at(*w, "state") == "live");
    CHECK(int_at(*w, "incarnation") == 1);
    CHECK(int_at(*w, "pid") == getpid());
    CHECK(text_at(*w, "peers.0.transport") == "shm");
    for (size_t p = 0; p < size_at(*w, "peers"); ++p) {
      const auto peer = "peers." + std::to_string(p);
      CHECK(number_at(*w, peer + ".rtt_us") > 0);
    }
  }
  // L-M05: Q, K and V of a row are 1 + 2/G times its attention output; G is 2 here. The canary may
  // be on its way: then the workers are asked again.
  j.status_when([](const json_value& now) {
    const auto back = bytes_sent(now, "attention");
    return back > 0 && bytes_sent(now, "model") == 2 * back;
  });
  json_value keep;
  CHECK(size_at(*worker_at(status, "model/0", keep), "peers") == 3);
  CHECK(size_at(*worker_at(status, "attention/0", keep), "peers") == 3);
}

TEST_CASE("L-M27 shards pull from two prefill workers, by heads and by requests, over any tier") {
  std::vector<std::string> wanted;
  for (const uint32_t tokens : {1u, 16u, 39u, 40u, 130u, 300u, 450u, 64u})
    wanted.push_back(R"({"model":"tiny","prompt":)" + token_list(tokens, tokens)
                     + R"(,"max_tokens":8,"ignore_eos":true,"logprobs":1,"seed":3})");
  const auto expected = undisturbed(wanted);
  for (const auto tier : {config::transport::shm, config::transport::tcp})
    for (const auto by : {config::partition::heads, config::partition::requests}) {
      CAPTURE((tier == config::transport::tcp));
      CAPTURE((by == config::partition::requests));
      auto settings = remote_settings(1, 3, 2);
      settings.pools.attention.partition = by;
      settings.pools.prefill.serialize_below_tokens = 40;
      settings.batching.prefill_chunk_tokens = 64;
      joined j{settings, tier};
      j.start([&] {
        j.add(worker_role::model, "m0");
        for (int i = 0; i < 3; ++i) j.add(worker_role::attention, "a" + std::to_string(i));
        for (int i = 0; i < 2; ++i) j.add(worker_role::prefill, "p" + std::to_string(i));
      });
      CHECK(j.choices_of(wanted) == expected);
      CHECK(j.node->parts().metrics->scrape().body.find("lamella_kv_pull_seconds_count 0\n")
            == std::string::npos);
    }
}

TEST_CASE(
    "Prefill workers go one by one: the one left has all streams, then the replica has them") {
  std::vector<std::string> wanted;
  for (uint32_t i = 0; i < 16; ++i)
    wanted.push_back(R"({"model":"tiny","prompt":)" + token_list(20 + 25 * i, i)
                     + R"(,"max_tokens":20,"ignore_eos":true,"logprobs":1,"seed":4})");
  const auto expected = undisturbed(wanted);
  auto settings = remote_settings(1, 3, 2);
  settings.batching.prefill_chunk_tokens = 32;
  settings.pools.prefill.serialize_below_tokens = 200;
  joined j{settings};
  j.start([&] {
    for (int i = 0; i < 2; ++i) j.add(worker_role::prefill, "p" + std::to_string(i));
    j.add(worker_role::model, "m0");
    for (int i = 0; i < 3; ++i) j.add(worker_role::attention, "a" + std::to_string(i));
  });
  for (int left = 1; left >= 0; --left) {
    CAPTURE(left);
    const auto epoch = j.node->server()->epoch;
    std::vector<json_value> got;
    std::optional<slow_tokens> slow{2000ms};
    std::thread client{[&] { got = j.choices_of(wanted); }};
    j.wait_for_running(8);
    j.workers.pop_front();
    slow.reset();
    client.join();
    CHECK(got == expected);
    CHECK(eventually([&] { return j.node->server()->epoch > epoch; }));
    CHECK(j.choices_of(wanted) == expected);
  }
}

TEST_CASE("Replicas of this process work with shards that joined") {
  const auto wanted = bodies(6, 30);
  const auto expected = undisturbed(wanted);
  auto settings = remote_settings(1, 3, 1);
  settings.pools.model.placement = settings.pools.prefill.placement = placement::in_process;
  joined j{settings};
  j.start([&] {
    for (int i = 0; i < 3; ++i) j.add(worker_role::attention, "a" + std::to_string(i));
  });
  CHECK(j.choices_of(wanted) == expected);
}

TEST_CASE("A worker goes, another one comes, and running requests end with their own tokens") {
  const auto wanted = bodies(12, 300);
  const auto expected = undisturbed(wanted);
  auto settings = remote_settings(1, 3, 1);
  settings.pools.prefill.placement = placement::in_process;
  joined j{settings};
  j.start([&] {
    j.add(worker_role::model, "first");
    for (int i = 0; i < 3; ++i) j.add(worker_role::attention, "a" + std::to_string(i));
  });
  uint64_t epoch = j.node->server()->epoch;
  // The replica first, then a shard: whoever is oldest leaves, and comes back as somebody else.
  for (const auto role : {worker_role::model, worker_role::attention}) {
    CAPTURE(scheduler::to_string(role));
    std::vector<json_value> got;
    std::optional<slow_tokens> slow{std::in_place};
    std::thread client{[&] { got = j.choices_of(wanted); }};
    j.wait_for_running(12);
    j.workers.pop_front();
    slow.reset();
    // Two shards can serve without the third; requests wait until they do.
    if (role == worker_role::model)
      CHECK(eventually([&] { return j.call("GET", "/ready").status == 503; }));
    j.add(role, "second");
    client.join();
    CHECK(got == expected);
    CHECK(j.node->server()->epoch > epoch);
    epoch = j.node->server()->epoch;
  }
  json_value keep;
  const auto status =
      j.status_when([&](const json_value& x) { return worker_at(x, "model/0", keep) != nullptr; });
  CHECK(int_at(*worker_at(status, "model/0", keep), "incarnation") == 2);
  CHECK(text_at(*worker_at(status, "model/0", keep), "name") == "second");
  CHECK(eventually([&] { return j.call("GET", "/ready").status == 200; }));
}

namespace {

/// A worker that is drained when it is told to stop.
joined_worker& add_drained(joined& j, worker_role role, const std::string& name) {
  auto x = j.options(role, name);
  x.drain = 10min;
  return j.add(x);
}

/// Whether it has left without a loss.
bool leaves(joined& j, joined_worker& worker) {
  worker.leave();
  CHECK(eventually([&] { return worker.over(); }));
  const auto page = j.call("GET", "/metrics", {}, true).body;
  const auto lost = page.find("\nlamella_failovers_total{cause=\"exit\",role=\"model\"} 0\n");
  return worker.last() == session_end::stopped && lost != std::string::npos;
}

} // namespace

TEST_CASE("A replica or a shard that is told to stop leaves without a loss, and comes back") {
  const auto wanted = bodies(6, 40);
  const auto expected = undisturbed(wanted);
  auto settings = remote_settings(2, 2, 1);
  settings.pools.prefill.placement = placement::in_process;
  settings.pools.attention.partition = config::partition::requests;
  joined j{settings};
  j.start([&] {
    for (int i = 0; i < 2; ++i) {
      add_drained(j, worker_role::model, "m" + std::to_string(i));
      add_drained(j, worker_role::attention, "a" + std::to_string(i));
    }
  });
  for (const auto role : {worker_role::model, worker_role::attention}) {
    CAPTURE(scheduler::to_string(role));
    auto& worker = j.workers.front(); // a model, and then a shard
    std::vector<json_value> got;
    std::optional<slow_tokens> slow{std::in_place};
    std::thread client{[&] { got = j.choices_of(wanted); }};
    j.wait_for_running(6);
    CHECK(leaves(j, worker));
    slow.reset();
    client.join();
    CHECK(got == expected);
    j.workers.pop_front();
    // One that is started in its place finds a seat: the pool has kept it, or grows back.
    add_drained(j, role, "again");
    CHECK(eventually([&] { return members_of(j, std::string{scheduler::to_string(role)}) == 2; }));
    CHECK(eventually(
        [&] { return j.call("GET", "/ready").body.find("degraded") == std::string::npos; }));
    CHECK(j.choices_of(wanted) == expected);
  }
}

TEST_CASE("A pool of other hosts that is autoscaled follows the workers that come and go") {
  auto settings = remote_settings(1, 1, 1);
  settings.pools.prefill.placement = placement::in_process;
  settings.pools.model.most = 2;
  joined j{settings};
  j.start([&] {
    add_drained(j, worker_role::model, "m0");
    j.add(worker_role::attention, "a0");
  });
  auto& second = add_drained(j, worker_role::model, "m1");
  CHECK(eventually([&] { return members_of(j, "model") == 2; }));
  auto& third = j.add(worker_role::model, "m2");
  CHECK(eventually([&] { return third.over(); }));
  CHECK(third.last() == session_end::refused);
  CHECK(j.choices_of(bodies(2, 5)).size() == 2);
  CHECK(leaves(j, second));
  CHECK(eventually([&] { return members_of(j, "model") == 1; }));
  CHECK(j.choices_of(bodies(2, 5)).size() == 2);
}

TEST_CASE("Whoever does not belong is sent away, and the service goes on") {
  auto settings = remote_settings(1, 1, 1);
  settings.pools.prefill.placement = placement::in_process;
  joined j{settings};
  j.start([&] {
    { // Another secret.
      const auto other = j.make_secret("other", 'x');
      joined_worker w{j.options(worker_role::model, "liar"), net::shared_secret::from_file(other),
                      j.links};
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::denied);
    }
    { // Another model.
      tests::tiny_model_options model;
      model.layers = 4;
      auto x = j.options(worker_role::model, "other-model");
      x.model = tiny_model(model);
      auto& w = j.add(x);
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::refused);
    }
    { // A device that is not there.
      auto x = j.options(worker_role::attention, "no-device");
      x.device = "cuda:3";
      x.open_cuda = [](unsigned index) -> std::shared_ptr<gpu::device> {
        CHECK(index == 3);
        throw std::runtime_error{"no GPU support: nothing here"};
      };
      auto& w = j.add(x);
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::refused);
    }
    { // No model.
      auto x = j.options(worker_role::model, "no-model");
      x.model = j.folder / "none.gguf";
      auto& w = j.add(x);
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::refused);
    }
    { // Other heartbeats.
      auto x = j.options(worker_role::model, "impatient");
      x.control.dead = std::chrono::seconds{119};
      auto& w = j.add(x);
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::refused);
    }
    { // A pool that takes no processes.
      auto& w = j.add(worker_role::prefill, "nobody-asked");
      CHECK(eventually([&] { return w.over(); }));
      CHECK(w.last() == session_end::refused);
    }
    j.add(worker_role::model, "m0");
    j.add(worker_role::attention, "a0");
  });
  { // A full pool.
    auto& w = j.add(worker_role::model, "too-late");
    CHECK(eventually([&] { return w.over(); }));
    CHECK(w.last() == session_end::refused);
  }
  CHECK(j.choices_of(bodies(1, 5)).size() == 1);
  CHECK(j.node->server()->epoch == 1); // none of them disturbed it
}

} // namespace lamella::actors::test
