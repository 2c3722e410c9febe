#include "actors/lane/lane.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {
namespace {

struct world : stage {
  std::shared_ptr<replica_book> replica = std::make_shared<replica_book>();
  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  std::shared_ptr<std::vector<bool>> beside = std::make_shared<std::vector<bool>>();
  std::shared_ptr<scheduler_book> scheduler = std::make_shared<scheduler_book>();
  prefill_worker_actor worker;

  explicit world(uint32_t chunk = 8,
                 scheduler::prompt_order order = scheduler::prompt_order::fair) {
    lane_config c;
    auto& prompts = c.prompts.emplace();
    c.target.stream = stream_id{0};
    c.target.replicas = {spawn(stand_in_replica(replica))};
    c.target.shards = {spawn(stand_in_shard(shard))};
    c.target.allocator = spawn(stand_in_allocator(kv));
    prompts.chunk_tokens = chunk;
    prompts.order = order;
    prompts.decode_beside = {spawn(stand_in_batch(beside))};
    c.scheduler = spawn(stand_in_scheduler(scheduler));
    worker = spawn(lane, std::move(c));
    settle();
  }
  std::shared_ptr<reply<prefilled>> offer(prefill x) {
    auto answer = ask<prefilled>(worker, std::move(x));
    settle();
    return answer;
  }
  void answer(uint64_t iteration) {
    REQUIRE(replica->waits_for(iteration));
    replica->answer(iteration);
    settle();
  }
};

} // namespace

TEST_CASE("scheduler and request hear when a prompt's turn comes, and how long that took") {
  world w;
  const auto client = std::make_shared<client_book>();
  const auto listener = w.spawn(stand_in_client(client));
  const auto of_client = [&](prefill x) {
    x.client = listener;
    return w.offer(std::move(x));
  };
  const auto first = of_client(prompt_of(1, 19));
  const auto second = of_client(prompt_of(2, 21)); // longer: it does not pass the first
  CHECK(w.scheduler->begun == std::vector<sequence_id>{seq(1)});
  w.answer(1);
  CHECK(w.scheduler->begun.size() == 1);
  CHECK(client->begun == w.scheduler->begun);
  w.sched.advance_time(std::chrono::milliseconds{250});
  w.answer(2); // three rows of the first are left, and five of the second fit beside them
  CHECK(w.scheduler->begun == std::vector<sequence_id>{seq(1), seq(2)});
  CHECK(client->begun == w.scheduler->begun);
  for (uint64_t i = 3; i <= 5; ++i) w.answer(i);
  REQUIRE(first->came);
  REQUIRE(second->came);
  CHECK(first->value.waited_us == 0);
  CHECK(second->value.waited_us == 250'000);
}

TEST_CASE("S-M06 the scheduler hears what is left of the prompts that have begun") {
  world w;
  w.offer(prompt_of(1, 19));
  w.offer(prompt_of(2, 21));
  CHECK(w.scheduler->left == std::vector<uint64_t>{11}); // the other one waits
  for (uint64_t i = 1; i <= 5; ++i) w.answer(i);
  CHECK(w.scheduler->left == std::vector<uint64_t>{11, 3, 16, 8, 0});
}

TEST_CASE("S-M10 a short prompt is computed between the chunks of a long one that came before") {
  world w;
  const auto first = w.offer(prompt_of(1, 40));
  const auto second = w.offer(prompt_of(2, 5));
  w.answer(1);
  CHECK(w.replica->launch_of(2).tokens.size() == 8); // it, and what fits of the first
  w.answer(2);
  CHECK(second->came);
  CHECK_FALSE(first->came);
  for (uint64_t i = 3; i <= 6; ++i) w.answer(i);
  CHECK(first->came);
}

TEST_CASE(
    "S-M10 prompts are cut into chunks; the last row of a prompt is drawn from once per choice") {
  world w;
  const auto answer = w.offer(prompt_of(1, 19, 3));
  for (uint64_t i = 1; i <= 3; ++i) {
    CHECK_FALSE(answer->came);
    const auto& x = w.replica->launch_of(i);
    CHECK(x.tokens.size() == (i < 3 ? 8 : 3));
    CHECK(x.spans.at(0).position == (i - 1) * 8);
    CHECK(x.samples.size() == (i < 3 ? 0 : 3));
    w.answer(i);
  }
  REQUIRE(answer->came);
  REQUIRE(answer->value.tokens.size() == 3);
  for (uint32_t k = 0; k < 3; ++k) CHECK(answer->value.tokens[k].token == token_for(1, k, 0));
}

TEST_CASE("a scored prompt reports every token but its first, beside the prompts of others") {
  world w;
  auto x = prompt_of(1, 19, 2);
  x.scored = 4;
  const auto answer = w.offer(x);
  const auto other = w.offer(prompt_of(2, 3));
  for (uint64_t i = 1; !answer->came; ++i) {
    const auto& launch = w.replica->launch_of(i);
    CHECK(std::is_sorted(launch.selected.begin(), launch.selected.end()));
    for (const auto& record : launch.samples)
      if (record.given != gpu::no_token) CHECK(record.logprobs == 4);
    if (i == 2) { // the devices fail: the same rows are scored again, none twice
      w.replica->fail(i);
      w.settle();
    }
    w.answer(i);
  }
  REQUIRE(other->came);
  CHECK(other->value.scores.empty());
  CHECK(other->value.tokens.at(0).token == token_for(2, 0, 0));
  REQUIRE(answer->value.scores.size() == 18);
  for (uint32_t i = 0; i < 18; ++i) CHECK(answer->value.scores[i].token == x.tokens[i + 1]);
  REQUIRE(answer->value.tokens.size() == 2);
  for (uint32_t k = 0; k < 2; ++k) CHECK(answer->value.tokens[k].token == token_for(1, k, 0));
}

TEST_CASE("a prompt is not scored where some of its rows are not computed") {
  world w;
  auto x = prompt_of(1, 19);
  x.scored = 1;
  x.cached = 4;
  CHECK(w.offer(x)->error);
}

TEST_CASE("prefix cache: positions that are there already are not computed, nor after a failure") {
  world w;
  auto x = prompt_of(1, 19, 2);
  x.cached = 16;
  const auto answer = w.offer(x);
  for (uint32_t attempt = 0; attempt < 2; ++attempt) {
    CAPTURE(attempt);
    const auto& launched = w.replica->launch_of(1);
    REQUIRE(launched.spans.size() == 1);
    CHECK(launched.spans[0].position == 16);
    CHECK(launched.tokens == std::vector<token_id>{116, 117, 118});
    if (attempt > 0) break;
    w.replica->fail(1);
    w.settle();
    REQUIRE(w.replica->launches.size() == 2);
  }
  w.answer(1);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.size() == 2);
  x.first = seq(2);
  x.cached = 19; // nothing would be left to draw from
  CHECK(w.offer(x)->error);
}

TEST_CASE("S-M10 short prompts share an iteration, in the order they came") {
  world w{16};
  const auto first = w.offer(prompt_of(1, 2));
  const auto a = w.offer(prompt_of(2, 5)), b = w.offer(prompt_of(3, 6)),
             c = w.offer(prompt_of(4, 9));
  w.answer(1);
  CHECK(first->came);
  const auto& x = w.replica->launch_of(2);
  REQUIRE(x.spans.size() == 3);
  CHECK(x.tokens.size() == 16);
  w.answer(2);
  CHECK(a->value.tokens.at(0).token == token_for(2, 0, 0));
  CHECK(b->value.tokens.at(0).token == token_for(3, 0, 0));
  CHECK_FALSE(c->came);
  w.answer(3);
  CHECK(c->value.tokens.at(0).token == token_for(4, 0, 0));
}

TEST_CASE("S-M10 first come, first served: a short prompt waits for a long one that came before") {
  world w{8, scheduler::prompt_order::fcfs};
  const auto first = w.offer(prompt_of(1, 40)), second = w.offer(prompt_of(2, 4));
  for (uint64_t i = 1; i <= 5; ++i) {
    CHECK_FALSE(first->came);
    CHECK(w.replica->launch_of(i).tokens.size() == 8);
    CHECK(w.scheduler->begun.size() == 1);
    w.answer(i);
  }
  CHECK(first->came);
  w.answer(6);
  CHECK(second->came);
}

TEST_CASE("A queued prompt is cancelled at once, a running one when its iteration has ended") {
  world w;
  const auto running = w.offer(prompt_of(1, 20));
  const auto queued = w.offer(prompt_of(2, 4));
  caf::anon_send(w.worker, prefill_cancel{seq(2)});
  w.settle();
  CHECK(queued->error == ec::cancelled);
  caf::anon_send(w.worker, prefill_cancel{seq(1)});
  w.settle();
  CHECK_FALSE(running->came); // its slots are being written
  w.answer(1);
  CHECK(running->error == ec::cancelled);
  CHECK(w.replica->launches.size() == 1);           // the rest of it is not run
  caf::anon_send(w.worker, prefill_cancel{seq(1)}); // of nobody
  const auto next = w.offer(prompt_of(3, 4));
  w.answer(2);
  CHECK_FALSE(next->error);
}

TEST_CASE("reliability A1: prompts may take what those before them tell, and more when they fail") {
  using namespace std::chrono_literals;
  world w;
  const auto answer = w.offer(prompt_of(1, 20));
  CHECK(w.replica->launch_of(1).timeout_ms == 60'000); // nothing is known
  w.advance(500ms, 100ms);
  w.answer(1); // 8 tokens
  CHECK(w.replica->launch_of(2).timeout_ms == 8'000);
  w.replica->fail(2, ec::deadline); // a frame was lost
  w.settle();
  CHECK(w.replica->launch_of(2).attempt == 1);
  CHECK(w.replica->launch_of(2).timeout_ms == 16'000);
  w.advance(500ms, 100ms);
  w.answer(2);                                       // measured from its second attempt on
  CHECK(w.replica->launch_of(3).timeout_ms < 8'000); // 4 tokens
  CHECK(w.replica->launch_of(3).timeout_ms > 6'000);
  w.answer(3);
  CHECK(answer->came);
}

TEST_CASE("F3 a failed prefill iteration runs again, and the third failure fails no prompt") {
  world w;
  const auto why = w.end_of(w.worker);
  const auto answer = w.offer(prompt_of(1, 4));
  w.replica->fail(1);
  w.settle();
  REQUIRE(w.replica->launches.size() == 2);
  CHECK(w.replica->launches[1].attempt == 1);
  CHECK(w.replica->launches[1].changes.empty()); // seats were taken with the first attempt
  w.answer(1);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.at(0).token == token_for(1, 0, 0));

  const auto hopeless = w.offer(prompt_of(2, 4)), patient = w.offer(prompt_of(3, 4));
  for (uint32_t i = 0; i < attempts_max; ++i) {
    CHECK_FALSE(*why);
    w.replica->fail(2);
    w.settle();
  }
  CHECK(*why == ec::attempts_spent);
  CHECK_FALSE(hopeless->came); // their requests ask the next pipeline
  CHECK_FALSE(patient->error == ec::device_lost);
}

TEST_CASE("A malformed prefill is refused") {
  world w;
  CHECK(w.offer(prefill{})->error);
  auto x = prompt_of(1, 4);
  x.draws.clear();
  CHECK(w.offer(x)->error);
  const auto once = w.offer(prompt_of(2, 4)), twice = w.offer(prompt_of(2, 4));
  CHECK(twice->error);
  CHECK_FALSE(once->came);
}

TEST_CASE("Any order of delivery answers every prompt once, with its own tokens") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    tests::splitmix random{seed};
    world w{static_cast<uint32_t>(1 + random.below(20))};
    w.replica->at_once = true;
    w.replica->random = tests::splitmix{seed + 1000};
    w.replica->fail_per_mille = 30;
    std::vector<std::shared_ptr<reply<prefilled>>> answers;
    std::set<uint64_t> cancelled;
    for (uint64_t r = 1; r <= 10; ++r) {
      answers.push_back(w.ask<prefilled>(
          w.worker, prompt_of(r, static_cast<uint32_t>(1 + random.below(40)), 1 + r % 3)));
      for (auto n = random.below(10); n > 0 && w.sched.has_job(); --n) w.step(random);
      if (random.below(4) == 0) {
        cancelled.insert(r);
        caf::anon_send(w.worker, prefill_cancel{seq(r)});
      }
    }
    w.settle(random);
    for (uint64_t r = 1; r <= 10; ++r) {
      CAPTURE(r);
      const auto& x = *answers[r - 1];
      REQUIRE(x.came);
      if (x.error) {
        CHECK((x.error == ec::cancelled && cancelled.contains(r)));
        continue;
      }
      for (uint32_t k = 0; k < 1 + r % 3; ++k)
        CHECK(x.value.tokens.at(k).token == token_for(r, k, 0));
    }
  }
}

TEST_CASE(
    "L-M26 what lost its KV is computed again, the shortest first, and batches know meanwhile") {
  world w{16};
  const auto fresh = w.offer(prompt_of(1, 30));
  CHECK(w.beside->empty()); // a new prompt is none
  const auto rebuild = [&](uint64_t request, uint32_t tokens) {
    auto x = prompt_of(request, tokens);
    x.rebuild = true;
    return w.offer(std::move(x));
  };
  const auto a = rebuild(2, 40), b = rebuild(3, 5), c = rebuild(4, 6);
  CHECK(*w.beside == std::vector<bool>{true});
  w.answer(1);
  // Seven tenths of an iteration, in the order of length; the rest is for the new prompt.
  const auto& x = w.replica->launch_of(2);
  CHECK(x.tokens.size() == 16);
  REQUIRE(x.spans.size() == 4);
  CHECK(x.tokens[0] == 300);
  CHECK(x.tokens[5] == 400);
  CHECK(x.tokens[11] == 200);
  CHECK(x.tokens[12] == 116);
  w.answer(2);
  CHECK(b->value.tokens.at(0).token == token_for(3, 0, 0));
  CHECK(c->value.tokens.at(0).token == token_for(4, 0, 0));
  CHECK_FALSE(a->came);
  CHECK(*w.beside == std::vector<bool>{true}); // one is left
  for (uint64_t i = 3; !a->came; ++i) w.answer(i);
  CHECK(a->value.tokens.at(0).token == token_for(2, 0, 0));
  CHECK(*w.beside == std::vector<bool>{true, false});
  CHECK(fresh->came); // it had its share
  // Whoever is not wanted any more is waited for no longer.
  const auto gone = rebuild(5, 40);
  CHECK(*w.beside == std::vector<bool>{true, false, true});
  caf::anon_send(w.worker, prefill_cancel{seq(5)});
  w.settle();
  w.answer(w.replica->launches.back().iteration);
  CHECK(gone->error == ec::cancelled);
  CHECK(*w.beside == std::vector<bool>{true, false, true, false});
}

} // namespace lamella::actors::test
