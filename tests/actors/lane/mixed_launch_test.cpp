// Launches that hold the rows of sequences that decode and pieces of prompts (S-M02).
#include "actors/protocol/batches.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/lane/batch_world.hpp"

namespace lamella::actors::test {
namespace {

struct world : batch_world {
  explicit world(void (*more)(lane_config&) = mixed) : batch_world{100, false, more} {}

  static void mixed(lane_config& c) { c.prompts.emplace().chunk_tokens = 8; }
  static void wide(lane_config& c) { c.prompts.emplace().chunk_tokens = 200; }
  static void standing(lane_config& c) {
    mixed(c);
    c.tokens->batch.stand_backs = 2;
  }

  std::shared_ptr<reply<prefilled>> offer(prefill x) {
    auto answer = ask<prefilled>(batch_, std::move(x));
    settle();
    return answer;
  }
  /// The newest launch, which nobody has answered.
  const iteration_launch& newest() { return replica->launches.back(); }
  uint32_t filled(uint64_t request) const {
    for (const auto& x : kv->filled)
      if (x.holder == seq(request)) return x.positions;
    return 0;
  }
  void answer_newest() { answer(newest().iteration); }
  /// Rows of the newest launch: of prompts, and of sequences that decode.
  uint32_t prompt_rows() {
    uint32_t rows = 0;
    for (const auto& x : newest().spans) rows += x.rows > 1 ? x.rows : 0;
    return rows;
  }
};

} // namespace

TEST_CASE("S-M12 sequences that decode sit launches out while more prompts wait than fit beside") {
  world w{world::standing};
  w.join(w.joining(1));
  w.offer(prompt_of(3, 200)); // more than the first mixed launch takes
  w.play(2);                  // those that were under way
  const auto before = w.tokens(1);
  for (int i = 0; i < 2; ++i) {
    CHECK(w.newest().spans.size() == 1);
    CHECK(w.newest().tokens.size() == 8); // of the prompt
    w.answer_newest();
    CHECK(w.tokens(1) == before);
  }
  CHECK(w.newest().spans.size() == 2); // it has stood back often enough
  w.answer_newest();
  CHECK(w.tokens(1) == before + 1);
  CHECK(w.newest().spans.size() == 2);
}

TEST_CASE("S-M12 what waits is compared with what fits by its work, not by its tokens") {
  for (const uint32_t tokens : {60, 63}) { // their work is 63 and 66, and 64 fits
    CAPTURE(tokens);
    world w{world::standing};
    w.join(w.joining(1));
    w.offer(prompt_of(3, tokens));
    w.play(2); // those that were under way
    CHECK(w.newest().tokens.size() == (tokens == 60 ? 1 + 8 : 8));
    w.answer_newest();
    CHECK(w.newest().tokens.size() == 1 + 8); // the rest fits
  }
}

TEST_CASE("S-M02 V-M16 a launch has a row of each sequence that decodes and a piece of a prompt") {
  world w;
  w.join(w.joining(1));
  w.join(w.joining(2));
  const auto computed = w.offer(prompt_of(3, 19));
  w.play(2); // those that were under way
  REQUIRE(w.newest().spans.size() == 3);
  CHECK(w.newest().tokens.size() == 2 + 8);
  CHECK(w.newest().samples.size() == 2); // the prompt goes on
  const auto before = w.tokens(1);
  w.answer_newest();
  CHECK(w.tokens(1) == before + 1); // decoding does not wait for the prompt
  CHECK(w.newest().tokens.size() == 2 + 8);
  w.answer_newest();
  CHECK(w.newest().tokens.size() == 2 + 3);
  CHECK(w.newest().samples.size() == 3);
  CHECK_FALSE(computed->came);
  w.answer_newest();
  REQUIRE(computed->came);
  CHECK(computed->value.tokens.at(0).token == token_for(3, 0, 0));
  CHECK(w.tokens(1) == before + 3);
  CHECK(w.client->tokens[seq(2)].back().value.token
        == token_for(2, 0, static_cast<uint32_t>(w.tokens(2))));
}

TEST_CASE("V-M16 a launch that took too long is followed by one with half of the prompt's rows") {
  world w{world::wide};
  w.join(w.joining(1));
  w.offer(prompt_of(3, 400));
  w.play(2); // those that were under way
  const auto first = w.prompt_rows();
  CHECK(first > 32);
  CHECK(first <= scheduler::composer::work_first);
  w.advance(std::chrono::milliseconds{500}, std::chrono::milliseconds{100});
  w.answer_newest();
  CHECK(w.newest().spans.size() == 2);
  CHECK(w.prompt_rows() > 16);
  CHECK(w.prompt_rows() <= first / 2);
}

TEST_CASE("S-M02 what a prompt samples and what sequences sample is not confused") {
  world w;
  w.join(w.joining(1));
  auto x = prompt_of(2, 5);
  x.scored = 1;
  const auto scored = w.offer(x);
  w.join(w.joining(3));
  w.play(3);
  REQUIRE(scored->came);
  REQUIRE(scored->value.scores.size() == 4);
  for (uint32_t i = 0; i < 4; ++i) CHECK(scored->value.scores[i].token == x.tokens[i + 1]);
  CHECK(scored->value.tokens.at(0).token == token_for(2, 0, 0));
  for (uint64_t request : {1, 3})
    for (uint32_t i = 0; i < w.tokens(request); ++i)
      CHECK(w.client->tokens[seq(request)][i].value.token == token_for(request, 0, i + 1));
}

TEST_CASE("L-M24 spans of a mixed launch are grouped by attention member") {
  world w;
  auto second = w.joining(1);
  second.member = 1;
  w.join(second);
  const auto first = w.offer(prompt_of(2, 4, 1, 0));
  w.join(w.joining(3));
  w.play(2);
  const auto& x = w.newest();
  REQUIRE(x.spans.size() == 3);
  CHECK(x.spans.back().seat == 0); // member 1: the sequence that came first
  // Each span's last row is sampled from, whatever comes before it.
  REQUIRE(x.samples.size() == 3);
  uint32_t rows = 0;
  for (size_t i = 0; i < 3; ++i) {
    rows += x.spans[i].rows;
    CHECK(x.selected.at(x.samples[i].row) == rows - 1);
    CHECK(x.sample_seats[i] == x.spans[i].seat);
  }
  w.answer_newest();
  CHECK(first->came);
  CHECK(w.client->tokens[seq(1)].back().value.token
        == token_for(1, 0, static_cast<uint32_t>(w.tokens(1))));
}

TEST_CASE("A mixed launch runs alone: nothing is launched ahead of it or behind it") {
  world w;
  w.join(w.joining(1));
  CHECK(w.replica->asked.size() == 2); // it runs ahead
  const auto computed = w.offer(prompt_of(2, 20));
  w.play(2);
  CHECK(w.prompt_rows() == 8);
  CHECK(w.replica->asked.size() == 1);
  w.answer_newest();
  CHECK(w.prompt_rows() == 8);
  CHECK(w.replica->asked.size() == 1);
  w.answer_newest();
  w.answer_newest();
  CHECK(computed->came);
  CHECK(w.replica->asked.size() == 2); // the prompt is over
}

TEST_CASE("reliability A4: a mixed launch that failed is run again, with the same piece") {
  world w;
  w.join(w.joining(1));
  const auto computed = w.offer(prompt_of(2, 11));
  w.play(2);
  const auto failed = w.newest();
  REQUIRE(w.prompt_rows() == 8);
  const auto before = w.tokens(1);
  w.replica->fail(failed.iteration);
  w.settle();
  const auto again = w.newest();
  CHECK(again.iteration == failed.iteration);
  CHECK(again.attempt == 1);
  CHECK(again.tokens == failed.tokens);
  REQUIRE(again.spans.size() == failed.spans.size());
  for (size_t i = 0; i < again.spans.size(); ++i)
    CHECK(again.spans[i].position == failed.spans[i].position);
  CHECK(w.tokens(1) == before);
  w.answer_newest();
  CHECK(w.tokens(1) == before + 1);
  CHECK(w.newest().tokens.size() == 1 + 3);
  w.answer_newest();
  REQUIRE(computed->came);
  CHECK(computed->value.tokens.at(0).token == token_for(2, 0, 0));
}

TEST_CASE("reliability A4: a prompt cancelled in a launch that failed takes part in the attempt") {
  world w;
  w.join(w.joining(1));
  const auto computed = w.offer(prompt_of(2, 11));
  w.play(2);
  w.replica->fail(w.newest().iteration);
  w.settle();
  caf::anon_send(w.batch_, prefill_cancel{seq(2)});
  w.settle();
  CHECK_FALSE(computed->came); // its slots may still be written
  CHECK(w.prompt_rows() == 8);
  w.answer_newest();
  CHECK(computed->error == ec::cancelled);
  CHECK(w.newest().tokens.size() == 1);
}

TEST_CASE("L-M03 a lane that hands over stops prompts and sequences behind what runs") {
  world w;
  w.join(w.joining(1));
  const auto computed = w.offer(prompt_of(2, 30));
  w.play(2);
  REQUIRE(w.prompt_rows() == 8);
  const auto stopped = w.ask<bool>(w.batch_, hand_over{true});
  w.settle();
  CHECK_FALSE(stopped->came);
  w.kv->filled.clear();
  w.answer_newest();
  CHECK(stopped->came);
  CHECK(w.replica->asked.empty());
  CHECK_FALSE(computed->came); // its request takes it on, from what is told here
  CHECK(w.filled(2) == 8);
  CHECK(w.filled(1) == 10 + w.tokens(1));
}

TEST_CASE("L-M03 a prompt that ends while its lane hands over is told before the lane answers") {
  world w;
  w.join(w.joining(1));
  const auto computed = w.offer(prompt_of(2, 5));
  w.play(2);
  w.kv->filled.clear();
  const auto stopped = w.ask<bool>(w.batch_, hand_over{true});
  w.settle();
  w.answer_newest();
  REQUIRE(stopped->came);
  CHECK(computed->came);
  CHECK(w.filled(2) == 5); // its request might tell too late for what is copied next
}

} // namespace lamella::actors::test
