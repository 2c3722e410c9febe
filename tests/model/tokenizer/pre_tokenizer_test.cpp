#include "model/tokenizer/pre_tokenizer.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace lamella;

namespace {

using words = std::vector<std::string>;

words split(const char* name, const std::string& text) {
  const auto* rules = model::find_pre_tokenizer(name);
  REQUIRE(rules);
  std::vector<size_t> ends;
  rules->split(text, ends);
  words out;
  size_t begin = 0;
  for (const size_t end : ends) {
    REQUIRE(end > begin);
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  REQUIRE(begin == text.size());
  return out;
}

} // namespace

TEST_CASE("GPT-2 words: contractions, one space before a word, runs of a class") {
  CHECK(split("gpt-2", "") == words{});
  CHECK(split("gpt-2", "I'll go") == words{"I", "'ll", " go"});
  CHECK(split("gpt-2", "I'LL") == words{"I", "'", "LL"});
  CHECK(split("gpt-2", "we're 's'x") == words{"we", "'re", " '", "s", "'", "x"});
  CHECK(split("gpt-2", "a  b   ") == words{"a", " ", " b", "   "});
  CHECK(split("gpt-2", "x = 12345;\n\n  y") == words{"x", " =", " 12345", ";", "\n\n ", " y"});
  CHECK(split("gpt-2", "\t\tx") == words{"\t", "\t", "x"});
  CHECK(split("gpt-2", "caf\u00E9 \u4F60\u597D\uFF01")
        == words{"caf\u00E9", " \u4F60\u597D", "\uFF01"});
  CHECK(split("gpt-2", "\u00BD\u2164x") == words{"\u00BD\u2164", "x"});
  CHECK(split("gpt-2", "e\u0301") == words{"e", "\u0301"});
  CHECK(split("gpt-2", "a\u00A0b") == words{"a", "\u00A0", "b"});
}

TEST_CASE("SmolLM2 words: every number character stands alone, also for the look ahead") {
  CHECK(split("smollm", "a 123") == words{"a", " ", "1", "2", "3"});
  CHECK(split("smollm", "a   1") == words{"a", "   ", "1"});
  CHECK(split("smollm", "2024-01") == words{"2", "0", "2", "4", "-", "0", "1"});
  CHECK(split("smollm", "I'll") == words{"I", "'ll"});
}

TEST_CASE("LLaMA-3 words: three numbers, a character before letters, newlines after marks") {
  CHECK(split("llama-bpe", "I'LL we'Ve") == words{"I", "'LL", " we", "'Ve"});
  CHECK(split("llama-bpe", "it'\u017Fa") == words{"it", "'\u017F", "a"});
  CHECK(split("llama-bpe", "12345678") == words{"123", "456", "78"});
  CHECK(split("llama-bpe", " 123") == words{" ", "123"});
  CHECK(split("llama-bpe", "(abc) $x") == words{"(abc", ")", " $", "x"});
  CHECK(split("llama-bpe", "end.\n\n\nnew") == words{"end", ".\n\n\n", "new"});
  CHECK(split("llama-bpe", "a \n \n  b") == words{"a", " \n \n", " ", " b"});
  CHECK(split("llama-bpe", "a\tb\t\tc") == words{"a", "\tb", "\t", "\tc"});
  CHECK(split("llama-bpe", "a   ") == words{"a", "   "});
}

TEST_CASE("Qwen2 words: those of LLaMA-3, with one number each") {
  CHECK(split("qwen2", "I'LL 123.") == words{"I", "'LL", " ", "1", "2", "3", "."});
  CHECK(split("qwen2", "(abc) $x\n\n") == words{"(abc", ")", " $", "x", "\n\n"});
}

TEST_CASE("GPT-4o words end where lower case turns to upper, contractions stay with them") {
  CHECK(split("gpt-4o", "camelCase HTTPServer2") == words{"camel", "Case", " HTTPServer", "2"});
  CHECK(split("gpt-4o", "We'LL don't ABC's x") == words{"We'LL", " don't", " ABC's", " x"});
  CHECK(split("gpt-4o", "a/b//\n\n/c") == words{"a", "/b", "//\n\n/", "c"});
  CHECK(split("gpt-4o", "12345 \n x") == words{"123", "45", " \n", " x"});
  CHECK(split("gpt-4o", "\u4F60A \u4F60a") == words{"\u4F60", "A", " \u4F60a"});
  CHECK(split("gpt-4o", "e\u0301E\u0301") == words{"e\u0301", "E\u0301"});
}

TEST_CASE("Tekken words: those of GPT-4o, with one number each and contractions apart") {
  CHECK(split("tekken", "We'LL camelCase 12")
        == words{"We", "'LL", " camel", "Case", " ", "1", "2"});
}

TEST_CASE("any bytes are cut into words without loss") {
  const uint64_t seed = 11;
  CAPTURE(seed);
  tests::splitmix random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t bytes = random.below(40); bytes > 0; --bytes) {
      static constexpr char common[] = "ab'sl \n\r\t12.\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\xFF";
      text += random.below(4) == 0 ? static_cast<char>(random.below(256))
                                   : common[random.below(sizeof common - 1)];
    }
    for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "tekken"})
      split(name, text);
  }
}

TEST_CASE("invalid bytes are words like marks, and valid characters stay whole") {
  CHECK(split("gpt-2", "a\xFF\xFE\xC3z") == words{"a", "\xFF\xFE\xC3", "z"});
  CHECK(split("llama-bpe", "\xE4\xBD") == words{"\xE4\xBD"});
}

TEST_CASE("names of pre-tokenisers are known or listed") {
  CHECK(model::find_pre_tokenizer("")->name == "default");
  CHECK(model::find_pre_tokenizer("viking") == nullptr);
  CHECK(model::pre_tokenizer_names().find("llama-bpe") != std::string::npos);
}
