#include "model/sampling.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace lamella::model;

namespace {

/// The edit of a token, or one that changes nothing.
logit_edit edit_of(const std::vector<logit_edit>& edits, token_id token) {
  for (const auto& x : edits)
    if (x.token == token) return x;
  return {token, 1, 0};
}

token_history history_of(std::vector<token_id> prompt, const std::vector<token_id>& generated) {
  token_history h;
  h.prompt(prompt);
  for (auto t : generated) h.generated(t);
  return h;
}

} // namespace

TEST_CASE("without penalties, biases or a least length nothing is edited") {
  CHECK(history_of({1, 7, 17}, {7, 54}).edits({}).empty());
}

TEST_CASE("presence counts once, frequency each time, and neither looks at the prompt") {
  sampling wanted;
  wanted.presence_penalty = 0.5f;
  wanted.frequency_penalty = 0.25f;
  const auto edits = history_of({1, 7}, {7, 7, 7, 54}).edits(wanted);
  CHECK(edit_of(edits, 7).add == -(0.5f + 3 * 0.25f));
  CHECK(edit_of(edits, 54).add == -(0.5f + 0.25f));
  CHECK(edit_of(edits, 1).add == 0);
  CHECK(edit_of(edits, 7).scale == 1);
}

TEST_CASE("repetition scales what was in the prompt or generated, once") {
  sampling wanted;
  wanted.repetition_penalty = 1.25f;
  const auto edits = history_of({1, 7, 7}, {7, 54}).edits(wanted);
  CHECK(edits.size() == 3);
  for (auto t : {1u, 7u, 54u}) CHECK(edit_of(edits, t).scale == 1.25f);
  CHECK(edit_of(edits, 17).scale == 1);
}

TEST_CASE("biases add to penalties, and several biases of one token to each other") {
  sampling wanted;
  wanted.presence_penalty = 1;
  wanted.bias = {{7, 2.f}, {17, -100.f}, {7, 0.5f}};
  const auto edits = history_of({}, {7}).edits(wanted);
  CHECK(edit_of(edits, 7).add == 1.5f);
  CHECK(edit_of(edits, 17).add == -100.f);
}

TEST_CASE("end tokens are impossible until the least length, whatever their bias") {
  sampling wanted;
  wanted.min_tokens = 2;
  wanted.end_tokens = {2, 54};
  wanted.bias = {{2, 100.f}};
  token_history h;
  for (int generated = 0; generated < 4; ++generated) {
    CAPTURE(generated);
    const auto edits = h.edits(wanted);
    const bool open = generated >= 2;
    CHECK(std::isinf(edit_of(edits, 2).add) == !open);
    CHECK(std::isinf(edit_of(edits, 54).add) == !open);
    if (open) CHECK(edit_of(edits, 2).add == 100.f);
    h.generated(9);
  }
}

TEST_CASE("edits come in order of tokens, each token once: the same history, the same edits") {
  sampling wanted;
  wanted.frequency_penalty = 0.1f;
  wanted.repetition_penalty = 1.1f;
  wanted.bias = {{60, 1.f}, {3, 1.f}};
  const auto edits = history_of({54, 17}, {7, 1}).edits(wanted);
  for (size_t i = 1; i < edits.size(); ++i) CHECK(edits[i - 1].token < edits[i].token);
  CHECK(edits.size() == 6);
}

TEST_CASE("only what looks back needs the history") {
  sampling x;
  x.bias = {{1, 1.f}};
  x.temperature = 0;
  x.top_k = 7;
  CHECK_FALSE(x.needs_history());
  for (auto set : {+[](sampling& s) { s.presence_penalty = -1; },
                   +[](sampling& s) { s.frequency_penalty = 0.1f; },
                   +[](sampling& s) { s.repetition_penalty = 0.9f; },
                   +[](sampling& s) { s.min_tokens = 1; }}) {
    auto y = x;
    set(y);
    CHECK(y.needs_history());
  }
}
