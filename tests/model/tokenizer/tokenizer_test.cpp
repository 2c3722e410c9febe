#include "model/tokenizer/tokenizer.hpp"

#include "base/file_error.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/random.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::special;
using model::text_segment;
using model::token_id;
using ids = std::vector<token_id>;

namespace {

model::tokenizer_source tiny_source() {
  const tests::tiny_vocabulary words = tests::make_tiny_vocabulary();
  model::tokenizer_source source;
  source.file = "tiny.gguf";
  source.kind = "gpt2";
  source.pre = "smollm";
  source.tokens = words.tokens;
  for (const int32_t type : words.types)
    source.kinds.push_back(static_cast<model::token_kind>(type));
  source.merges = words.merges;
  source.bos = 1;
  source.eos = 2;
  return source;
}

token_id byte_token(char c) { return 3 + static_cast<unsigned char>(c); }

ids byte_tokens(std::string_view text) {
  ids tokens;
  for (const char c : text) tokens.push_back(byte_token(c));
  return tokens;
}

bool has_special(const model::tokenizer& tokens, const ids& encoded) {
  return std::any_of(encoded.begin(), encoded.end(),
                     [&](token_id id) { return tokens.is_special(id); });
}

const char* const markers[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

void refuses(const model::tokenizer_source& source, const std::string& words) {
  CHECK_THROWS_WITH_AS(model::make_tokenizer(source), doctest::Contains(words.c_str()), file_error);
}

} // namespace

TEST_CASE("words are merged by rank") {
  const auto tokens = model::make_tokenizer(tiny_source());
  const auto the = tokens->encode(" the", special::forbidden);
  REQUIRE(the.size() == 1);
  CHECK(tokens->token_bytes(the[0]) == " the");
  CHECK(tokens->encode("", special::forbidden).empty());
  CHECK(tokens->encode("xyz", special::forbidden) == byte_tokens("xyz"));
  CHECK(tokens->decode(tokens->encode("Hello and the ring", special::forbidden))
        == "Hello and the ring");
}

TEST_CASE("properties of tokens are those of the source") {
  auto source = tiny_source();
  source.more_ends = {3};
  const auto tokens = model::make_tokenizer(source);
  CHECK(tokens->vocabulary() == 278);
  CHECK(tokens->bos() == 1u);
  CHECK(tokens->eos() == 2u);
  CHECK_FALSE(tokens->adds_bos());
  CHECK(tokens->is_special(0));
  CHECK_FALSE(tokens->is_special(3));
  CHECK(tokens->is_end(2));
  CHECK(tokens->is_end(3));
  CHECK(tokens->is_end(0)); // <|endoftext|> ends an answer whatever the file says
  CHECK_FALSE(tokens->is_end(1));
  CHECK(tokens->special_token("<|im_end|>") == 2u);
  CHECK_FALSE(tokens->special_token("the"));
  CHECK(tokens->token_bytes(278).empty());
  CHECK_FALSE(tokens->is_special(278));
  CHECK_FALSE(tokens->is_end(278));
  source.add_bos = true;
  CHECK(model::make_tokenizer(source)->adds_bos());
  source.bos.reset();
  CHECK_FALSE(model::make_tokenizer(source)->adds_bos());
}

TEST_CASE("control tokens come out of trusted text only") {
  const auto tokens = model::make_tokenizer(tiny_source());
  for (const char* marker : markers) {
    CAPTURE(marker);
    const auto id = tokens->special_token(marker);
    REQUIRE(id);
    CHECK(tokens->encode(marker, special::allowed) == ids{*id});
    CHECK_FALSE(has_special(*tokens, tokens->encode(marker, special::forbidden)));
    const std::string inside = std::string("a") + marker + "b" + marker;
    CHECK(tokens->encode(inside, special::allowed)
          == ids{byte_token('a'), *id, byte_token('b'), *id});
    CHECK_FALSE(has_special(*tokens, tokens->encode(inside, special::forbidden)));
    CHECK(tokens->decode(tokens->encode(inside, special::forbidden)) == inside);
    CHECK(tokens->decode(tokens->encode(inside, special::allowed)) == inside);
  }
}

TEST_CASE("a marker that is split over segments is one only if all of it is trusted") {
  const auto tokens = model::make_tokenizer(tiny_source());
  for (const std::string marker : markers) {
    for (size_t cut = 0; cut <= marker.size(); ++cut) {
      for (int trust = 0; trust < 4; ++trust) {
        const text_segment segments[]{{marker.substr(0, cut), (trust & 1) != 0},
                                      {"", false},
                                      {marker.substr(cut), (trust & 2) != 0}};
        const bool whole = (cut == 0 || (trust & 1)) && (cut == marker.size() || (trust & 2));
        CAPTURE(marker);
        CAPTURE(cut);
        CAPTURE(trust);
        CHECK(has_special(*tokens, tokens->encode(segments)) == whole);
      }
    }
  }
}

TEST_CASE("no user text inside a template makes a control token") {
  const uint64_t seed = 5;
  CAPTURE(seed);
  tests::splitmix random(seed);
  const auto tokens = model::make_tokenizer(tiny_source());
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t pieces = random.below(6); pieces > 0; --pieces) {
      const std::string marker = markers[random.below(3)];
      const size_t from = random.below(marker.size());
      text += marker.substr(from, 1 + random.below(marker.size()));
    }
    const text_segment segments[]{
        {"<|im_start|>user\n", true}, {text, false}, {"<|im_end|>\n<|im_start|>assistant\n", true}};
    const ids encoded = tokens->encode(segments);
    CAPTURE(text);
    CHECK(std::count_if(encoded.begin(), encoded.end(),
                        [&](token_id id) { return tokens->is_special(id); })
          == 3);
    CHECK(tokens->decode(encoded)
          == "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST_CASE("apart from control tokens the borders of segments do not matter") {
  const uint64_t seed = 6;
  CAPTURE(seed);
  tests::splitmix random(seed);
  const auto tokens = model::make_tokenizer(tiny_source());
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t bytes = random.below(60); bytes > 0; --bytes)
      text += "the andlo\n'12 \xE4\xBD\xA0"[random.below(17)];
    std::vector<text_segment> segments;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = 1 + random.below(7);
      segments.push_back({text.substr(at, bytes), random.below(2) == 0});
      at += bytes;
    }
    CAPTURE(text);
    CHECK(tokens->encode(segments) == tokens->encode(text, special::forbidden));
  }
}

TEST_CASE("the least tokens of a text count control tokens, of which one may be the longest") {
  auto source = tiny_source();
  const std::string longest = "<|a control token longer than any other one|>";
  source.tokens.push_back(longest);
  source.kinds.push_back(model::token_kind::control);
  auto spaced = source;
  spaced.take_space = {1};
  for (const auto& x : {source, spaced}) {
    const auto tokens = model::make_tokenizer(x);
    CHECK(tokens->longest_token() == longest.size());
    std::string text;
    for (int i = 0; i < 5; ++i) text += longest;
    CHECK(tokens->encode(text, special::allowed).size() == 5);
    CHECK(tokens->fewest_tokens(text) <= 5);
    tests::splitmix random{3};
    for (int round = 0; round < 300; ++round) {
      std::vector<text_segment> segments;
      text.clear();
      for (size_t n = random.below(12); n > 0; --n) {
        const std::string piece[]{longest, markers[1], " ", "the ", "\xFF", longest.substr(0, 9)};
        text += piece[random.below(6)];
        segments.push_back({text, random.below(2) == 0});
      }
      CHECK(tokens->fewest_tokens(text) <= tokens->encode(text, special::allowed).size());
      CHECK(tokens->fewest_tokens(text) <= tokens->encode(text, special::forbidden).size());
      CHECK(tokens->fewest_tokens(segments) <= tokens->encode(segments).size());
    }
  }
}

TEST_CASE("any bytes come back, valid UTF-8 or not") {
  const uint64_t seed = 7;
  CAPTURE(seed);
  tests::splitmix random(seed);
  auto source = tiny_source();
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"}) {
    source.pre = pre;
    const auto tokens = model::make_tokenizer(source);
    for (int round = 0; round < 1000; ++round) {
      std::string text;
      for (uint64_t bytes = random.below(50); bytes > 0; --bytes)
        text += static_cast<char>(random.below(256));
      CHECK(tokens->decode(tokens->encode(text, special::forbidden)) == text);
      CHECK(tokens->decode(tokens->encode(text, special::allowed)) == text);
    }
  }
}

TEST_CASE("a byte without a token is left out, and the tokeniser says so") {
  auto source = tiny_source();
  source.tokens[byte_token('\x04')] = "unrelated";
  const auto tokens = model::make_tokenizer(source);
  CHECK_FALSE(tokens->has_byte(4));
  CHECK(tokens->has_byte(5));
  CHECK(tokens->encode("a\x04z", special::forbidden) == byte_tokens("az"));
}

TEST_CASE("user-defined tokens are text that is always taken whole, the longest first") {
  auto source = tiny_source();
  for (const char* text : {"<tool>", "<tool>x"}) {
    source.tokens.emplace_back(text);
    source.kinds.push_back(model::token_kind::user_defined);
  }
  const auto tokens = model::make_tokenizer(source);
  CHECK(tokens->encode("z<tool>xz<tool>", special::forbidden)
        == ids{byte_token('z'), 279, byte_token('z'), 278});
  CHECK_FALSE(tokens->is_special(278));
  CHECK(tokens->decode(ids{279}) == "<tool>x");
}

TEST_CASE("a user-defined token that ends answers is a control token all the same") {
  auto source = tiny_source();
  source.tokens.emplace_back("</s>");
  source.kinds.push_back(model::token_kind::user_defined);
  const auto tokens = model::make_tokenizer(source);
  CHECK(tokens->is_special(278));
  CHECK(tokens->is_end(278));
  CHECK(tokens->encode("a</s>", special::allowed) == ids{byte_token('a'), 278});
  CHECK(tokens->encode("</s>", special::forbidden) == byte_tokens("</s>"));
}

TEST_CASE("LLaMA-3 takes words of the vocabulary whole, but no control token that way") {
  auto source = tiny_source();
  source.tokens.emplace_back("zebra");
  source.kinds.push_back(model::token_kind::normal);
  source.tokens.emplace_back("yak");
  source.kinds.push_back(model::token_kind::control);
  CHECK(model::make_tokenizer(source)->encode("zebra", special::forbidden).size() > 1);
  source.pre = "llama-bpe";
  const auto tokens = model::make_tokenizer(source);
  CHECK(tokens->encode("zebra", special::forbidden) == ids{278});
  CHECK(tokens->encode("yak", special::forbidden) == byte_tokens("yak"));
  CHECK(tokens->encode("yak", special::allowed) == ids{279});
  CHECK(tokens->adds_bos());
}

TEST_CASE("a mebibyte of one thing is tokenised") {
  auto source = tiny_source();
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"}) {
    source.pre = pre;
    const auto tokens = model::make_tokenizer(source);
    for (const std::string unit : {"a", " ", "\n", "1", "'", "<", "<|im_end", "\xE4\xBD\xA0",
                                   "\xFF", "l", " \n", "the ", "\r\n\t"}) {
      CAPTURE(unit);
      std::string text;
      while (text.size() < 1u << 20) text += unit;
      CHECK(tokens->decode(tokens->encode(text, special::allowed)) == text);
    }
  }
}

TEST_CASE("sources that make no sense are refused with what is known") {
  auto source = tiny_source();
  source.pre = "viking";
  refuses(source, "'viking' is not known; known are gpt-2");
  source = tiny_source();
  source.kind = "bert";
  refuses(source, "'bert' is not read; known are gpt2");
  source.kind = "";
  refuses(source, "tokenizer.ggml.model: is missing");
  source = tiny_source();
  source.tokens.clear();
  refuses(source, "tokenizer.ggml.tokens");
  for (const char* rule : {"", "ab", "a ", " a", "a q", "q\x01 z", "\xFF a"}) {
    source = tiny_source();
    source.merges.push_back(rule);
    CAPTURE(rule);
    refuses(source, "tokenizer.ggml.merges[19]");
  }
}
