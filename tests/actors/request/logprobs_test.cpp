// The log probabilities of a prompt in the words of the API.
#include "actors/request/logprobs.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

token_id byte_token(char x) { return 3 + static_cast<unsigned char>(x); }

/// Of tokens that are bytes, the n-th with log probability -n; `begins`: a token before them.
prompt_scores_ptr scores_of(const std::string& bytes, std::optional<token_id> begins = {}) {
  auto result = std::make_shared<prompt_scores>();
  std::vector<token_id> ids;
  if (begins) ids.push_back(*begins);
  for (char x : bytes) ids.push_back(byte_token(x));
  result->first = ids.at(0);
  for (size_t i = 1; i < ids.size(); ++i) {
    sampled_token x;
    x.token = ids[i];
    x.logprob = -static_cast<float>(i);
    x.rank = 4;
    x.top = {{byte_token('e'), -0.25f}, {ids[i], -static_cast<float>(i)}};
    result->rest.push_back(x);
  }
  return result;
}

std::vector<uint32_t> code_points(const echo_piece& piece) {
  std::vector<uint32_t> result;
  for (const auto& x : piece.logprobs) result.push_back(x.code_points.value_or(99));
  return result;
}

} // namespace

TEST_CASE("an echoed prompt is its text; its first token has no log probability") {
  const auto service = tiny_service();
  prompt_echo echo{*service.text, scores_of("h\xC3\xA9y"), "h\xC3\xA9y", "", 1};
  const auto piece = echo.next(100);
  CHECK(echo.done());
  CHECK(piece.text == "h\xC3\xA9y");
  REQUIRE(piece.logprobs.size() == 4);
  CHECK_FALSE(piece.logprobs[0].logprob);
  CHECK(piece.logprobs[0].bytes == "h");
  CHECK(piece.logprobs[3].logprob == -3);
  CHECK(piece.logprobs[3].top.size() == 1);
  CHECK(code_points(piece) == std::vector<uint32_t>{1, 1, 0, 1});
}

TEST_CASE("pieces of an echo end at whole characters, and together are the whole") {
  const auto service = tiny_service();
  const std::string text = "a\xE2\x82\xAC\xE2\x82\xAC z";
  for (size_t least = 1; least < 10; ++least) {
    CAPTURE(least);
    prompt_echo echo{*service.text, scores_of(text), text, "", 2};
    std::string said;
    size_t tokens = 0;
    while (!echo.done()) {
      const auto piece = echo.next(least);
      CHECK((piece.text.empty() || (piece.text[0] & 0xC0) != 0x80));
      said += piece.text;
      tokens += piece.logprobs.size();
    }
    CHECK(said == text);
    CHECK(tokens == text.size());
  }
}

TEST_CASE("a token that is no part of the text takes no place in it") {
  const auto service = tiny_service();
  token_id mark = 0;
  while (!service.text->is_special(mark)) ++mark;
  prompt_echo echo{*service.text, scores_of("hi", mark), "hi", "", 0};
  CHECK(code_points(echo.next(9)) == std::vector<uint32_t>{0, 1, 1});
}

TEST_CASE("a character that the prompt leaves unfinished is told with what completes it") {
  const auto service = tiny_service();
  prompt_echo echo{*service.text, scores_of("h\xC3"), "h", "\xC3", 0};
  const auto piece = echo.next(9);
  CHECK(piece.text == "h");
  CHECK(code_points(piece) == std::vector<uint32_t>{1, 1});
}

TEST_CASE("what is no character of an echo has the place that U+FFFD takes in its text") {
  const auto service = tiny_service();
  const auto counts_of = [&](const std::string& text) {
    prompt_echo echo{*service.text, scores_of(text), text, "", 0};
    return code_points(echo.next(9));
  };
  using counts = std::vector<uint32_t>;
  CHECK(counts_of("\xA9|1") == counts{1, 1, 1});
  CHECK(counts_of("\xE2\x82(\x80") == counts{1, 0, 1, 1});
  CHECK(counts_of("\xE2\xE2\x82\xAC\xFF") == counts{1, 1, 0, 0, 1});
  prompt_echo ends{*service.text, scores_of("\xA9\xE2\x82"), "\xA9", "\xE2\x82", 0};
  CHECK(code_points(ends.next(9)) == counts{1, 1, 0});
  // They do not hold a piece together, either.
  const std::string many(20, '\x80');
  prompt_echo pieces{*service.text, scores_of(many), many, "", 0};
  CHECK(pieces.next(3).text.size() == 3);
}

TEST_CASE("text that a tokeniser changes has as many places as it has characters") {
  const auto service = tiny_service();
  prompt_echo echo{*service.text, scores_of("abcd"), "\xC3\x84 c", "", 0};
  const auto piece = echo.next(9);
  CHECK(piece.text == "\xC3\x84 c");
  CHECK(code_points(piece) == std::vector<uint32_t>{1, 1, 1, 0});
}

TEST_CASE("vLLM's log probabilities of a prompt: the token first, then the others by rank") {
  const auto service = tiny_service();
  const auto all = candidates_of(*service.text, *scores_of("hey"), 2);
  REQUIRE(all.size() == 3);
  CHECK(all[0].empty());
  REQUIRE(all[1].size() == 1); // the best is the token itself
  CHECK(all[1][0].rank == 4);
  REQUIRE(all[2].size() == 2);
  CHECK(all[2][0].bytes == "y");
  CHECK(all[2][0].logprob == -2);
  CHECK(all[2][1].bytes == "e");
  CHECK(all[2][1].rank == 1);
  CHECK(candidates_of(*service.text, *scores_of("hey"), 0)[2].size() == 1);
}

} // namespace lamella::actors::test
