#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "tests/actors/lane/batch_world.hpp"

namespace lamella::actors::test {
namespace {

using world = batch_world;

} // namespace

TEST_CASE("reliability A4: slots that a given-up iteration may still write are kept until the next "
          "attempt has ended") {
  world w;
  w.join(w.joining(1));
  w.join(w.joining(2));
  w.play(2);
  REQUIRE(w.launched(3).spans.size() == 2);
  w.leave(1);
  w.replica->fail(3);
  w.settle();
  CHECK(w.kv->released.empty());
  const auto again = w.replica->launches.back();
  CHECK(again.attempt == 1);
  CHECK(again.spans.size() == 2);
  const auto before = w.tokens(1);
  w.answer(again.iteration);
  CHECK(w.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.tokens(1) == before);
  CHECK(w.replica->launches.back().spans.size() == 1);
}

TEST_CASE("A failed iteration is launched again from the committed tokens") {
  world w;
  w.join(w.joining(1));
  w.answer(1);
  REQUIRE(w.replica->waits_for(2));
  REQUIRE(w.replica->waits_for(3));
  w.replica->fail(2);
  w.settle();
  // Both in flight were dropped; the new one runs at the position of the failed one.
  CHECK(w.replica->waits_for(4));
  CHECK(w.launched(4).attempt == 1);
  CHECK(w.launched(4).spans[0].position == w.launched(2).spans[0].position);
  CHECK(w.launched(4).tokens[0] == token_for(1, 0, 1));
  w.replica->answer(3); // too late
  w.settle();
  CHECK(w.tokens(1) == 1);
  w.answer(4);
  REQUIRE(w.tokens(1) == 2);
  CHECK(w.client->tokens[seq(1)][1].value.token == token_for(1, 0, 2));
  CHECK(w.client->failed.empty());
}

TEST_CASE("A shard's failure counts like the replica's, and only once") {
  world w;
  w.join(w.joining(1));
  caf::anon_send(w.batch_, iteration_failed{stream_id{0}, 1, 0, false, "shard 0"});
  caf::anon_send(w.batch_, iteration_failed{stream_id{0}, 1, 0, false, "shard 1"});
  w.settle();
  CHECK(w.launched(3).attempt == 1);
  w.replica->fail(1);
  w.settle();
  CHECK(w.client->failed.empty());
  for (const auto& x : w.replica->launches) CHECK(x.attempt <= 1);
}

TEST_CASE("F3 attempts that are spent end the batch and none of its sequences: REFORM") {
  world w;
  const auto why = w.end_of(w.batch_);
  w.join(w.joining(1));
  for (uint32_t i = 0; i < attempts_max; ++i) {
    CHECK_FALSE(*why);
    w.replica->fail(i == 0 ? 1 : w.replica->launches.back().iteration);
    w.settle();
  }
  CHECK(*why == ec::attempts_spent);
  CHECK(w.client->failed.empty());
  CHECK(w.kv->released.empty());                         // the next epoch finds its KV
  CHECK(w.replica->launches.size() == attempts_max + 1); // two at first
}

// Found by `lamella chaos drop`: the launch behind an attempt cleared the streams of the attempt.

TEST_CASE("reliability A4: nothing is launched behind an attempt that could clear it") {
  world w;
  w.join(w.joining(1));
  w.replica->fail(1);
  w.settle();
  const auto attempt = w.replica->launches.back().iteration;
  CHECK(w.launched(attempt).attempt == 1);
  CHECK(w.launched(attempt).timeout_ms >= w.launched(1).timeout_ms);
  CHECK(w.replica->asked.size() == 2); // the one given up, and the attempt
  w.answer(attempt);
  CHECK(w.tokens(1) == 1);
  CHECK(w.replica->launches.back().attempt == 0);
  CHECK(w.replica->launches.size() == attempt + 2); // it runs ahead again
}

TEST_CASE("reliability A1: when nobody answers in time, again and again, the links are made anew") {
  world w;
  w.join(w.joining(1));
  caf::error reason;
  w.batch_->attach_functor([&](const caf::error& e) { reason = e; });
  // Found by simulated seed 40473: two silent ones, and then a device that says that it has failed.
  auto last = ec::deadline;
  SUBCASE("silence alone") {}
  SUBCASE("the last one says why") { last = ec::device_lost; }
  for (uint32_t i = 0; i < attempts_max; ++i) {
    CHECK(reason == caf::none);
    w.replica->fail(i == 0 ? 1 : w.replica->launches.back().iteration,
                    i + 1 == attempts_max ? last : ec::deadline);
    w.settle();
  }
  CHECK(reason == ec::attempts_silent);
  CHECK(w.client->failed.empty()); // the sequences go on in the next epoch
}

TEST_CASE("Logits that are not finite end one sequence, not its neighbours") {
  world w;
  auto plain = w.joining(1, 6), broken = w.joining(2, 6);
  plain.wanted.presence_penalty = broken.wanted.presence_penalty = 1; // no running ahead
  w.join(plain);
  w.join(broken);
  w.play(1);
  const auto& x = w.replica->launches.back();
  REQUIRE(x.spans.size() == 2);
  auto result = replica_book::answer_to(x);
  result.tokens[1].finite = false;
  w.replica->asked.extract({0, x.iteration}).mapped().deliver(result);
  w.settle();
  w.play(20);
  CHECK(w.client->failed == std::vector<sequence_id>{seq(2)});
  CHECK(w.tokens(1) == 5);
  REQUIRE(w.kv->released == std::vector<sequence_id>{seq(2), seq(1)});
  CHECK(w.kv->doubted == std::vector<sequence_id>{seq(2)}); // nobody else may have its K and V
}

TEST_CASE("L-M26 while lost KV is computed again, iterations take their share of the time alone") {
  world w{20};
  const auto order = [&](bool some) {
    caf::anon_send(w.batch_, kv_rebuilding{stream_id{scheduler::prefill_streams}, some});
    w.settle();
  };
  const auto pass = [&](int ms) { w.advance(std::chrono::milliseconds{ms}); };
  order(true);
  w.join(w.joining(1));
  REQUIRE(w.replica->launches.size() == 1); // nothing is launched ahead
  pass(10);
  w.answer(1);
  CHECK(w.tokens(1) == 1); // at once, for the client
  w.join(w.joining(2));    // sits down during the rest
  pass(39);
  CHECK(w.replica->launches.size() == 1);
  pass(1);
  REQUIRE(w.replica->launches.size() == 2);
  CHECK(w.launched(2).spans.size() == 2);
  pass(30);
  w.answer(2);
  CHECK(w.replica->launches.size() == 2);
  // Nothing is left to compute again: it goes on at once, and ahead; the wake finds nothing to do.
  pass(5);
  order(false);
  CHECK(w.replica->launches.size() == 4);
  pass(1000);
  CHECK(w.replica->launches.size() == 4);
  w.answer(3);
  w.answer(4);
  CHECK(w.replica->launches.size() == 6);
}

TEST_CASE("L-M26 a sequence leaves a batch that rests, and who waits for it is not kept waiting") {
  world w{1};
  caf::anon_send(w.batch_, kv_rebuilding{stream_id{scheduler::prefill_streams}, true});
  w.join(w.joining(1));
  w.advance(std::chrono::milliseconds{20});
  w.answer(1);
  w.leave(1);
  CHECK(w.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.scheduler->retired == std::vector<sequence_id>{seq(1)});
  w.advance(scheduler::decode_pace::rest_max + std::chrono::milliseconds{1});
  CHECK(w.replica->launches.size() == 1); // nobody is there
}

} // namespace lamella::actors::test
