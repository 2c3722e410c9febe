#include "model/tokenizer/detokenizer.hpp"

#include "base/utf8.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/random.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::detokenizer;
using model::token_id;

namespace {

std::unique_ptr<model::tokenizer> tiny() {
  const tests::tiny_vocabulary words = tests::make_tiny_vocabulary();
  model::tokenizer_source source;
  source.kind = "gpt2";
  source.tokens = words.tokens;
  for (const int32_t type : words.types)
    source.kinds.push_back(static_cast<model::token_kind>(type));
  source.merges = words.merges;
  return model::make_tokenizer(source);
}

token_id byte_token(char c) { return 3 + static_cast<unsigned char>(c); }

bool is_valid(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto unit = decode_utf8(text, at);
    if (unit.kind != lamella::utf8_unit::state::valid) return false;
    at += unit.bytes;
  }
  return true;
}

/// Pushes the bytes one token each; the pieces that came out, then what finish() gave.
std::vector<std::string> pieces(const model::tokenizer& tokens, std::string_view bytes) {
  detokenizer out(tokens);
  std::vector<std::string> released;
  for (const char c : bytes) released.push_back(out.push(byte_token(c)));
  released.push_back(out.finish());
  return released;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

} // namespace

TEST_CASE("text goes on within the character that the tokens before it left unfinished") {
  const auto tokens = tiny();
  tests::splitmix random{11};
  for (int round = 0; round < 500; ++round) {
    std::vector<token_id> before;
    for (size_t n = random.below(6); n > 0; --n) {
      const std::string_view bytes = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF";
      before.push_back(byte_token(bytes[random.below(bytes.size())]));
    }
    detokenizer whole(*tokens);
    std::string text;
    for (const auto t : before) text += whole.push(t);
    const auto unfinished = model::unfinished_end(*tokens, before);
    CHECK(unfinished.size() == whole.held());
    detokenizer rest(*tokens, detokenizer::specials::skipped, {}, unfinished);
    for (const char c : {'\xA9', '\x82', '!'})
      CHECK(rest.push(byte_token(c)) == whole.push(byte_token(c)));
  }
  const std::vector<token_id> euro{byte_token('a'), byte_token('\xE2'), byte_token('\x82')};
  CHECK(model::unfinished_end(*tokens, euro) == "\xE2\x82");
  CHECK(model::unfinished_end(*tokens, {}).empty());
}

TEST_CASE("text is released at the borders of code points") {
  const auto tokens = tiny();
  using list = std::vector<std::string>;
  CHECK(pieces(*tokens, "a\xC3\xA9") == list{"a", "", "\u00E9", ""});
  CHECK(pieces(*tokens, "\xF0\x9F\x98\x80!") == list{"", "", "", "\U0001F600", "!", ""});
  CHECK(pieces(*tokens, "\xF0\x9F\x98") == list{"", "", "", "\uFFFD"});
  CHECK(pieces(*tokens, "") == list{""});
}

TEST_CASE("bytes that are no UTF-8 become one replacement for each beginning of a sequence") {
  const auto tokens = tiny();
  const auto text = [&](std::string_view bytes) { return joined(pieces(*tokens, bytes)); };
  CHECK(text("\xFF") == "\uFFFD");
  CHECK(text("\x80\x80") == "\uFFFD\uFFFD");
  CHECK(text("\xE4\xBDz") == "\uFFFDz");
  CHECK(text("\xE4\xE4\xBD\xA0") == "\uFFFD\u4F60");
  CHECK(text("\xC0\xAF") == "\uFFFD\uFFFD");           // overlong
  CHECK(text("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD"); // a surrogate
  CHECK(text("\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(text("\xF0\x80") == "\uFFFD\uFFFD");
}

TEST_CASE("whatever the tokens, the text is valid and a function of the tokens alone") {
  const uint64_t seed = 9;
  CAPTURE(seed);
  tests::splitmix random(seed);
  const auto tokens = tiny();
  detokenizer reused(*tokens, detokenizer::specials::shown);
  for (int round = 0; round < 2000; ++round) {
    std::vector<token_id> ids;
    for (uint64_t count = random.below(30); count > 0; --count) {
      static constexpr char common[] = "\xE4\xBD\xA0\xF0\x9F\x98\x80\xC3\xA9";
      ids.push_back(random.below(3) == 0 ? static_cast<token_id>(random.below(278))
                                         : byte_token(common[random.below(sizeof common - 1)]));
    }
    std::string streamed;
    for (const token_id id : ids) {
      const std::string piece = reused.push(id);
      CHECK(is_valid(piece));
      CHECK(reused.held() <= 3);
      streamed += piece;
    }
    streamed += reused.finish();
    CHECK(reused.held() == 0);

    // All bytes at once, decoded in one go.
    std::string at_once;
    const std::string bytes = tokens->decode(ids);
    for (size_t at = 0; at < bytes.size();) {
      const auto unit = decode_utf8(bytes, at);
      append_utf8(at_once, unit.code_point);
      at += unit.bytes;
    }
    CHECK(streamed == at_once);
  }
}

TEST_CASE("control tokens are skipped or shown") {
  const auto tokens = tiny();
  detokenizer skipping(*tokens), showing(*tokens, detokenizer::specials::shown);
  CHECK(skipping.push(2).empty());
  CHECK(skipping.push(byte_token('a')) == "a");
  CHECK(showing.push(2) == "<|im_end|>");
  CHECK(showing.push(9999).empty());
}
