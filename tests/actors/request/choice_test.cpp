// What a choice says of its tokens, and where it ends.
#include "actors/request/choice.hpp"
#include "actors/request/logprobs.hpp"
#include "base/utf8.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

namespace {

const std::string call =
    "<tool_call>\n{\"name\": \"save\", \"arguments\": {\"a\": \"stop, here\"}}\n</tool_call>";

struct said {
  std::string text, arguments;
  net::stop_reason stopped_by;
  finish reason = finish::none;
};

/// An answer of tokens that are bytes, until the choice or the answer is over.
said read(const net::generation_params& params, const std::string& answer, bool has_tools) {
  const auto service = tiny_service();
  choice c{*service.text, params, {}, has_tools ? &service.tool_calls : nullptr};
  for (const char byte : answer) {
    sampled_token drawn;
    drawn.token = 3 + static_cast<unsigned char>(byte);
    c.push(drawn, finish::none);
    if (c.over()) break;
  }
  if (!c.over()) {
    sampled_token end;
    end.token = service.end_tokens.at(0);
    c.push(end, finish::stop);
  }
  said out;
  const auto piece = c.take();
  out.text = piece.text;
  for (const auto& x : piece.calls) out.arguments += x.arguments;
  out.stopped_by = c.stopped_by();
  out.reason = c.reason();
  return out;
}

token_id byte_token(char x) { return 3 + static_cast<unsigned char>(x); }

} // namespace

TEST_CASE("a choice begins with the character that the text before it left unfinished") {
  const auto service = tiny_service();
  const auto begun = [&](const std::string& bytes) {
    choice c{*service.text, {}, byte_token('\xC3'), nullptr, "\xC3"};
    for (const char byte : bytes) {
      sampled_token drawn;
      drawn.token = byte_token(byte);
      c.push(drawn, finish::none);
    }
    c.close(finish::length);
    return c.take().text;
  };
  CHECK(begun("\xA9!") == "\u00E9!");
  CHECK(begun("!") == "\uFFFD!");
  CHECK(begun("") == "\uFFFD");
}

TEST_CASE("tokens that the text leaves out take no room in it") {
  const auto service = tiny_service();
  token_id special = 0;
  while (!service.text->is_special(special)) ++special;
  for (const bool skips : {true, false}) {
    net::generation_params params;
    params.logprobs = 0;
    params.skip_special_tokens = skips;
    choice c{*service.text, params};
    for (const auto token : {byte_token('a'), special, byte_token('b')}) {
      sampled_token drawn;
      drawn.token = token;
      c.push(drawn, finish::none);
    }
    c.close(finish::length);
    const auto piece = c.take();
    REQUIRE(piece.logprobs.size() == 3);
    CHECK(piece.logprobs[1].code_points == code_points(piece.text) - 2);
    CHECK(piece.logprobs[2].code_points == 1u);
    CHECK((piece.text == "ab") == skips);
  }
}

TEST_CASE("a token has the code points that begin with it in the text as it is written") {
  const auto service = tiny_service();
  const auto of = [&](const std::string& bytes, const std::string& before = {}) {
    net::generation_params params;
    params.logprobs = 0;
    choice c{*service.text, params, {}, nullptr, before};
    for (const char byte : bytes) {
      sampled_token drawn;
      drawn.token = byte_token(byte);
      c.push(drawn, finish::none);
    }
    c.close(finish::length);
    std::vector<uint32_t> result;
    const auto piece = c.take();
    uint32_t sum = before.empty() ? 0 : 1; // what is begun before is counted there
    for (const auto& x : piece.logprobs) sum += result.emplace_back(x.code_points.value_or(99));
    CHECK(sum == code_points(piece.text));
    return result;
  };
  using counts = std::vector<uint32_t>;
  CHECK(of("a\xC3\xA9z") == counts{1, 1, 0, 1});
  CHECK(of("\xA9|1") == counts{1, 1, 1});    // U+FFFD|1
  CHECK(of("\xA9\xA9") == counts{1, 1});     // one each
  CHECK(of("\xE2\x82(") == counts{1, 0, 1}); // one for both, then (
  CHECK(of("\xE2\xE2\x82\xAC") == counts{1, 1, 0, 0});
  CHECK(of("a\xE2\x82") == counts{1, 1, 0});
  CHECK(of("\xA9!", "\xC3") == counts{0, 1});
  CHECK(of("!", "\xC3") == counts{1});
}

TEST_CASE("stop strings and stop tokens end the text beside tools, and no call") {
  net::generation_params strings, tokens;
  strings.stop = {"stop", ","};
  tokens.stop_token_ids = {byte_token(','), byte_token('\n'), byte_token('_')};
  for (const auto& params : {strings, tokens}) {
    const auto whole = read(params, "I do" + call, true);
    CHECK(whole.text == "I do");
    CHECK(whole.arguments == R"({"a": "stop, here"})");
    CHECK(whole.reason == finish::stop);
    CHECK(std::holds_alternative<std::monostate>(whole.stopped_by));
    const auto cut = read(params, "I do, " + call, true);
    CHECK(cut.text == "I do");
    CHECK(cut.arguments.empty());
    CHECK_FALSE(std::holds_alternative<std::monostate>(cut.stopped_by));
  }
  // Text that only looked like a call at first.
  strings.stop = {"_dance"};
  CHECK(read(strings, "a <tool_dance>, b", true).text == "a <tool");
  strings.stop = {"end"};
  CHECK(read(strings, "a <tool_end", true).text == "a <tool_");
}

TEST_CASE("text that could still be a stop string is told where a call begins") {
  net::generation_params params;
  params.stop = {"do not"};
  const auto x = read(params, "I do " + call, true);
  CHECK(x.text == "I do");
  CHECK(x.arguments == R"({"a": "stop, here"})");
}

TEST_CASE("without tools a stop string is found in any text") {
  net::generation_params params;
  params.stop = {"stop"};
  CHECK(read(params, call, false).text == call.substr(0, call.find("stop")));
}

TEST_CASE("a stop string ends an answer only behind min_tokens tokens") {
  net::generation_params params;
  params.stop = {"ab"};
  params.min_tokens = 4;                                   // here bytes
  CHECK(read(params, "ab ab ab ab", false).text == "ab "); // the fifth token completes it
  params.min_tokens = 5;
  const auto x = read(params, "ab ab ab ab", false);
  CHECK(x.text == "ab ab ");
  CHECK(x.reason == finish::stop);
  CHECK(x.stopped_by == net::stop_reason{"ab"});
  params.min_tokens = 11;
  CHECK(read(params, "ab ab ab ab", false).text == "ab ab ab ab");
}

} // namespace lamella::actors::test
