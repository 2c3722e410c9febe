// Requests, scheduler, allocator, prefill workers and batches together, on virtual time, with
// devices that draw known tokens and sometimes fail: every order of delivery must end the same.
#include "actors/batch.hpp"
#include "actors/global_scheduler.hpp"
#include "actors/kv_allocator.hpp"
#include "actors/prefill_worker.hpp"
#include "tests/actors/fake_exchange.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {
namespace {

struct trouble {
  uint32_t slots = 4000;
  uint32_t tables = 1;
  uint32_t fail_per_mille = 0;
  uint32_t cancel_per_mille = 0; ///< of the steps
  bool slow_readers = false;
};

struct cluster : stage {
  std::shared_ptr<replica_book> replica = std::make_shared<replica_book>();
  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();
  std::shared_ptr<actors::service> server = std::make_shared<actors::service>(tiny_service());
  uint32_t requests_alive = 0;

  explicit cluster(const trouble& t, uint64_t seed) {
    replica->at_once = true;
    replica->random = tests::splitmix{seed};
    replica->fail_per_mille = t.fail_per_mille;
    iteration_target target;
    target.replica = spawn(stand_in_replica(replica));
    target.shards = {spawn(stand_in_shard(shard))};
    kv_allocator_config k;
    for (uint32_t i = 0; i < t.tables; ++i) k.tables.push_back("attention-" + std::to_string(i));
    k.slots = t.slots;
    k.shards = target.shards;
    k.numbers = server->numbers;
    server->allocator = target.allocator = spawn(kv_allocator, std::move(k));
    target.numbers = server->numbers;
    global_scheduler_config g;
    g.batches = 2;
    g.seats_per_batch = 4;
    g.prefill_workers = 2;
    g.window_slots = server->window_slots;
    g.slots = server->slots = t.slots;
    server->scheduler = spawn(global_scheduler, std::move(g), server->allocator);
    for (uint32_t i = 0; i < 2; ++i) {
      target.stream = stream_id{scheduler::prefill_streams + i};
      server->prefill_workers.push_back(spawn(prefill_worker, prefill_worker_config{target, 16}));
    }
    for (uint32_t i = 0; i < 2; ++i) {
      target.stream = stream_id{i};
      server->batches.push_back(
          spawn(batch, batch_config{target, server->scheduler, server->window_slots}));
    }
    settle();
  }

  ~cluster() { end_all(); }

  void begin(std::shared_ptr<fake_exchange> exchange, uint64_t id) {
    auto handle = system.spawn(request, actors::service_ptr{server}, exchange_ptr{exchange},
                               request_id{id}, false);
    ++requests_alive;
    handle->attach_functor([this](const caf::error&) { --requests_alive; });
    caf::anon_send(handle, begin_atom_v);
    owned.emplace_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
  }
};

std::string expected_text(uint64_t seed, uint32_t choice, uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += static_cast<char>(token_for(seed, choice, i) - 3);
  return text;
}

/// 10 requests of up to 3 choices in a random order of delivery; returns the preemptions.
double run(uint64_t seed, const trouble& t) {
  tests::splitmix random{seed};
  cluster c{t, seed};
  struct job {
    std::shared_ptr<fake_exchange> exchange;
    uint32_t tokens, choices;
    bool stream, cancelled = false;
  };
  std::vector<job> jobs;
  const auto turn = [&] {
    c.step(random);
    if (jobs.empty()) return;
    auto& j = jobs[random.below(jobs.size())];
    if (random.below(1000) < t.cancel_per_mille) {
      j.exchange->disconnect();
      j.cancelled = true;
    }
    if (t.slow_readers && random.below(20) == 0) j.exchange->drain();
  };
  for (uint64_t r = 1; r <= 10; ++r) {
    const auto tokens = static_cast<uint32_t>(1 + random.below(60));
    const auto choices = static_cast<uint32_t>(1 + random.below(3));
    const bool stream = random.below(2) == 0;
    auto more = ",\"n\":" + std::to_string(choices);
    if (stream) more += ",\"stream\":true";
    if (random.below(3) == 0) more += ",\"presence_penalty\":0.5";
    auto exchange = std::make_shared<fake_exchange>(
        completion_body(static_cast<uint32_t>(1 + random.below(50)), tokens, r, more));
    exchange->takes = !t.slow_readers;
    jobs.push_back({exchange, tokens, choices, stream});
    c.begin(exchange, r);
    for (auto steps = random.below(60); steps > 0 && c.sched.has_job(); --steps) turn();
  }
  for (int i = 0;; ++i) {
    REQUIRE(i < 1'000'000);
    if (c.sched.has_job()) {
      turn();
      continue;
    }
    for (auto& j : jobs) j.exchange->drain();
    if (!c.sched.has_job()) break;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto& j = jobs[i];
    CAPTURE(i);
    if (j.cancelled) continue;
    CHECK(j.exchange->answers == 1);
    CHECK(j.exchange->status == 200);
    CHECK(j.exchange->done() == j.stream);
    for (uint32_t k = 0; k < j.choices; ++k)
      CHECK(j.exchange->text(k) == expected_text(i + 1, k, j.tokens));
  }
  CHECK(c.requests_alive == 0);
  const auto usage = c.ask<kv_usage>(c.server->allocator, status_atom_v);
  c.settle();
  for (auto used : usage->value.used) CHECK(used == 0);
  uint64_t running = 9, waiting = 9;
  c.spawn([&](caf::event_based_actor* self) {
    self->request(c.server->scheduler, caf::infinite, status_atom_v)
        .then([&](uint64_t a, uint64_t b) { running = a, waiting = b; }, [](caf::error&) {});
  });
  c.settle();
  CHECK(running == 0);
  CHECK(waiting == 0);
  const auto page = c.server->numbers->scrape().body;
  const auto at = page.find("\nvllm:num_preemptions_total");
  REQUIRE(at != std::string::npos);
  const auto line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
  return std::stod(line.substr(line.rfind(' ') + 1));
}

} // namespace

TEST_CASE("V-M14 V-M15 any order of delivery ends every request with its own tokens") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    run(seed, {});
  }
}

TEST_CASE("V-M12 so does any order while slots are short and sequences are preempted") {
  double preempted = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    trouble t;
    t.slots = 150;
    preempted += run(seed, t);
  }
  CHECK(preempted > 50);
}

TEST_CASE("So it does with two slot tables, failing devices, leaving clients and slow readers") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    trouble t;
    t.slots = 160;
    t.tables = 1 + seed % 2;
    t.fail_per_mille = 10;
    t.cancel_per_mille = 3;
    t.slow_readers = true;
    run(seed, t);
  }
}

TEST_CASE("The same seed runs the same way") {
  trouble t;
  t.slots = 150;
  CHECK(run(7, t) == run(7, t));
}

} // namespace lamella::actors::test
