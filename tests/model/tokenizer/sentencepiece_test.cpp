// SentencePiece vocabularies against merging as it is defined, and what is put before texts.
#include "base/file_error.hpp"
#include "model/tokenizer/detokenizer.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

using namespace lamella;
using model::special, model::text_segment, model::token_id, model::token_kind;
using ids = std::vector<token_id>;

namespace {

constexpr const char* mark = "\u2581";

/// 0 <unk>, 1 <s>, 2 </s>, then the 256 bytes, then pieces with scores.
model::tokenizer_source source_of(const std::vector<std::pair<std::string, float>>& pieces) {
  model::tokenizer_source source;
  source.file = "tiny.gguf";
  source.kind = "llama";
  source.tokens = {"<unk>", "<s>", "</s>"};
  source.kinds = {token_kind::unknown, token_kind::control, token_kind::control};
  source.scores = {0, 0, 0};
  const auto add = [&](const std::string& text, token_kind kind, float score) {
    source.tokens.push_back(text);
    source.kinds.push_back(kind);
    source.scores.push_back(score);
  };
  for (unsigned byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    add(text, token_kind::byte, 0);
  }
  for (const auto& [text, score] : pieces) add(text, token_kind::normal, score);
  source.bos = 1;
  source.eos = 2;
  return source;
}

token_id byte_token(char c) { return 3 + static_cast<unsigned char>(c); }

model::tokenizer_source small_source() {
  const std::string m = mark;
  return source_of({{m, -1},
                    {"a", -2},
                    {"b", -3},
                    {"c", -4},
                    {m + "a", -5},
                    {"ab", -6},
                    {m + m, -7},
                    {m + "ab", -8},
                    {"bc", -9},
                    {m + m + m + m, -10},
                    {"\u4F60", -11},
                    {"\u597D", -12},
                    {"\u4F60\u597D", -13}});
}

ids tokens_of(const model::tokenizer& tokens, const std::vector<std::string>& texts) {
  ids out;
  for (const auto& text : texts)
    for (token_id id = 259; id < tokens.vocabulary(); ++id)
      if (tokens.token_bytes(id) == text) out.push_back(id);
  return out;
}

/// Merging as it is defined: again and again the neighbours that are the piece of the highest score
/// together, of equal ones the leftmost.
ids merge_plainly(const model::tokenizer_source& source, const std::string& text) {
  std::map<std::string, token_id> pieces;
  for (token_id id = 259; id < source.tokens.size(); ++id) pieces.emplace(source.tokens[id], id);
  std::vector<std::string> symbols;
  std::string escaped = mark;
  for (const char c : text) escaped += c == ' ' ? std::string{mark} : std::string(1, c);
  for (size_t at = 0; at < escaped.size();) {
    const size_t bytes = escaped.compare(at, 3, mark) == 0 ? 3 : 1;
    symbols.push_back(escaped.substr(at, bytes));
    at += bytes;
  }
  for (;;) {
    size_t best = symbols.size();
    float score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = pieces.find(symbols[i] + symbols[i + 1]);
      if (found == pieces.end()) continue;
      if (best != symbols.size() && source.scores[found->second] <= score) continue;
      best = i;
      score = source.scores[found->second];
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  ids out;
  for (const auto& x : symbols) {
    const auto found = pieces.find(x);
    if (found != pieces.end()) {
      out.push_back(found->second);
    } else if (x == mark) {
      out.push_back(byte_token(' '));
    } else {
      for (const char c : x) out.push_back(byte_token(c));
    }
  }
  return out;
}

std::string stream(const model::tokenizer& tokens, const ids& list,
                   std::optional<token_id> before = {}) {
  model::detokenizer out(tokens, model::detokenizer::specials::shown, before);
  std::string text;
  for (const auto id : list) text += out.push(id);
  return text + out.finish();
}

void refuses(const model::tokenizer_source& source, const std::string& words) {
  CHECK_THROWS_WITH_AS(model::make_tokenizer(source), doctest::Contains(words.c_str()), file_error);
}

} // namespace

TEST_CASE("SentencePiece: pieces are merged by score, and words begin with a space") {
  const auto tokens = model::make_tokenizer(small_source());
  const auto encode = [&](const char* text) { return tokens->encode(text, special::forbidden); };
  CHECK(encode("").empty());
  CHECK(encode("ab") == tokens_of(*tokens, {" ab"}));
  CHECK(encode("abc") == tokens_of(*tokens, {" ab", "c"}));
  CHECK(encode(" ab") == tokens_of(*tokens, {" ", " ab"}));
  CHECK(encode("b  b") == tokens_of(*tokens, {" ", "b", "  ", "b"}));
  CHECK(encode("a   ") == tokens_of(*tokens, {" a", "  ", " "}));
  CHECK(encode("\u4F60\u597D") == tokens_of(*tokens, {" ", "\u4F60\u597D"}));
  CHECK(tokens->adds_bos());
}

TEST_CASE("SentencePiece: characters without a piece become their bytes") {
  const auto tokens = model::make_tokenizer(small_source());
  CHECK(tokens->encode("\n", special::forbidden)
        == ids{tokens_of(*tokens, {" "})[0], byte_token('\n')});
  CHECK(tokens->encode("a\u00E9", special::forbidden)
        == ids{tokens_of(*tokens, {" a"})[0], byte_token('\xC3'), byte_token('\xA9')});
  // The name of a byte's token is text like any other.
  const auto named = tokens->encode("<0x0A>", special::allowed);
  CHECK(std::count(named.begin(), named.end(), byte_token('\n')) == 0);
  CHECK(tokens->decode(named) == "<0x0A>");
  for (unsigned byte = 0; byte < 256; ++byte) CHECK(tokens->has_byte(static_cast<uint8_t>(byte)));
  auto without = small_source();
  without.kinds[byte_token('z')] = token_kind::unused;
  const auto fewer = model::make_tokenizer(without);
  CHECK_FALSE(fewer->has_byte('z'));
  CHECK(fewer->decode(fewer->encode("azb", special::forbidden)) == "ab");
}

TEST_CASE("SentencePiece: cutting and a heap equal merging by definition") {
  const uint64_t seed = 4;
  CAPTURE(seed);
  tests::splitmix random(seed);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<std::pair<std::string, float>> pieces;
    std::map<std::string, bool> seen;
    const std::string letters[]{"a", "b", "c", mark};
    for (uint64_t wanted = 1 + random.below(20); pieces.size() < wanted;) {
      std::string text;
      for (uint64_t length = 1 + random.below(5); length > 0; --length)
        text += letters[random.below(4)];
      if (!seen.emplace(text, true).second) break;
      // Equal scores on purpose: then the leftmost goes first.
      pieces.emplace_back(text, -static_cast<float>(random.below(6)));
    }
    const auto source = source_of(pieces);
    const auto tokens = model::make_tokenizer(source);
    for (int word = 0; word < 20; ++word) {
      std::string text;
      for (uint64_t length = 1 + random.below(30); length > 0; --length)
        text += "abc d"[random.below(5)];
      CAPTURE(text);
      CHECK(tokens->encode(text, special::forbidden) == merge_plainly(source, text));
    }
  }
}

TEST_CASE("SentencePiece: any bytes come back, at once and as a stream of what is text") {
  const uint64_t seed = 5;
  CAPTURE(seed);
  tests::splitmix random(seed);
  for (const bool prefix : {true, false}) {
    auto source = small_source();
    source.add_space_prefix = prefix;
    const auto tokens = model::make_tokenizer(source);
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (uint64_t count = random.below(30); count > 0; --count) {
        static constexpr const char* parts[]{" ",    "  ",           "ab",       "c",
                                             "\n",   "\u4F60\u597D", "\u00E9",   "<s>",
                                             "</s>", "\xFF",         "\xE2\x96", "\x81"};
        text += random.below(4) == 0 ? std::string(1, static_cast<char>(random.below(256)))
                                     : parts[random.below(std::size(parts))];
      }
      if (text.find(mark) != std::string::npos) continue; // comes back as a space
      CAPTURE(text);
      const auto plain = tokens->encode(text, special::forbidden);
      CHECK(tokens->decode(plain) == text);
      CHECK(tokens->decode(tokens->encode(text, special::allowed)) == text);
      for (const auto id : plain) CHECK_FALSE(tokens->is_special(id));
    }
  }
  const auto tokens = model::make_tokenizer(small_source());
  for (const std::string text : {"", " ", "a", " a", "\u4F60 \u597D", "</s>a</s> b", "\n"})
    for (const auto policy : {special::allowed, special::forbidden})
      CHECK(stream(*tokens, tokens->encode(text, policy)) == text);
  CHECK(tokens->decode(tokens->encode("a\u2581b", special::forbidden)) == "a b");
}

TEST_CASE("SentencePiece: the space before a text is put after each token that is taken whole") {
  auto source = small_source();
  source.tokens.emplace_back("<tool>");
  source.kinds.push_back(token_kind::user_defined);
  source.scores.push_back(0);
  const auto tokens = model::make_tokenizer(source);
  const auto word = tokens_of(*tokens, {" ab"})[0];
  const auto tool = tokens->vocabulary() - 1;
  CHECK(tokens->encode("ab</s>ab", special::allowed) == ids{word, 2, word});
  CHECK(tokens->encode("<tool>ab<tool>", special::forbidden) == ids{tool, word, tool});
  CHECK(tokens->decode(ids{tool, word, 2, word}) == "<tool>ab</s>ab");
  const text_segment turns[]{{"<s>", true}, {"ab</s>", false}, {"</s>", true}};
  const auto encoded = tokens->encode(turns);
  CHECK(encoded.front() == 1);
  CHECK(encoded[1] == word);
  CHECK(encoded.back() == 2);
  CHECK(std::count(encoded.begin(), encoded.end(), 2) == 1);

  source.space_prefix_once = true;
  const auto once = model::make_tokenizer(source);
  const auto bound = tokens_of(*once, {"ab"})[0];
  CHECK(once->encode("ab</s>ab", special::allowed) == ids{word, 2, bound});
  CHECK(once->encode("</s>ab", special::allowed) == ids{2, bound});
  CHECK(once->decode(ids{word, 2, bound}) == "ab</s>ab");
  CHECK(once->decode(ids{word, 2, word}) == "ab</s> ab");

  source.add_space_prefix = false;
  const auto bare = model::make_tokenizer(source);
  CHECK(bare->encode("ab", special::forbidden) == tokens_of(*bare, {"ab"}));
  CHECK(bare->decode(ids{word}) == " ab");
}

TEST_CASE("SentencePiece: Phi-3's markers take the white space after them") {
  auto source = small_source();
  for (const char* text : {"<|user|>", "<|endoftext|>"}) {
    source.tokens.emplace_back(text);
    source.kinds.push_back(token_kind::control);
    source.scores.push_back(0);
  }
  const auto keeps = model::make_tokenizer(source);
  const auto user = keeps->vocabulary() - 2, end = keeps->vocabulary() - 1;
  const auto word = tokens_of(*keeps, {" ab"})[0];
  CHECK(keeps->encode("<|user|>\nab", special::allowed)
        == ids{user, tokens_of(*keeps, {" "})[0], byte_token('\n'), tokens_of(*keeps, {"ab"})[0]});
  source.take_space = {user};
  const auto takes = model::make_tokenizer(source);
  CHECK(takes->encode("<|user|>\nab", special::allowed) == ids{user, word});
  CHECK(takes->encode("<|user|> \u3000\n<|user|> \n", special::allowed) == ids{user, user});
  CHECK(takes->encode("<|endoftext|> ab", special::allowed)
        == ids{end, tokens_of(*keeps, {" "})[0], word});
  const text_segment turns[]{{"<|user|>\n", true}, {"ab", false}};
  CHECK(takes->encode(turns) == ids{user, word});
  const text_segment typed[]{{"<|user|>", false}, {"\nab", false}};
  CHECK(takes->decode(takes->encode(typed)) == "<|user|>\nab");
}

TEST_CASE("SentencePiece: the least tokens of a text count control tokens, of which one may be the "
          "longest") {
  auto source = small_source();
  const std::string longest = "<|a control token longer than any other one|>";
  for (const auto& text : {longest, "<" + std::string{mark} + "|>"}) {
    source.tokens.push_back(text);
    source.kinds.push_back(token_kind::control);
    source.scores.push_back(0);
  }
  auto spaced = source;
  spaced.take_space = {2};
  tests::splitmix random{5};
  for (const auto& x : {source, spaced}) {
    const auto tokens = model::make_tokenizer(x);
    CHECK(tokens->longest_token() == longest.size());
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t n = random.below(12); n > 0; --n) {
        const std::string piece[]{longest, "</s>",      "    ",        "ab ",
                                  mark,    "<\u2581|>", "\u4F60\u597D"};
        text += piece[random.below(7)];
      }
      CAPTURE(text);
      CHECK(tokens->fewest_tokens(text) <= tokens->encode(text, special::allowed).size());
      CHECK(tokens->fewest_tokens(text) <= tokens->encode(text, special::forbidden).size());
    }
  }
}

TEST_CASE("SentencePiece: an answer that goes on after words keeps the space of its first one") {
  const auto tokens = model::make_tokenizer(small_source());
  const auto list = tokens_of(*tokens, {" ab", " a"});
  CHECK(stream(*tokens, list) == "ab a");                    // a text of its own
  CHECK(stream(*tokens, list, token_id{2}) == "ab a");       // after a control token
  CHECK(stream(*tokens, list, list[0]) == " ab a");          // after a word
  CHECK(stream(*tokens, list, byte_token('\n')) == " ab a"); // after a newline
  model::detokenizer skipping(*tokens);
  CHECK(skipping.push(2).empty());
  CHECK(skipping.push(list[0]) == "ab");
  CHECK(skipping.finish().empty());
  CHECK(skipping.push(list[0]) == "ab"); // a new text begins
}

TEST_CASE("SentencePiece: a mebibyte of one thing is tokenised") {
  const auto tokens = model::make_tokenizer(small_source());
  for (const std::string unit :
       {"a", " ", "\n", "ab", "abc ", "\u4F60\u597D", "\xFF", "</s", "z"}) {
    CAPTURE(unit);
    std::string text;
    while (text.size() < 1u << 20) text += unit;
    CHECK(tokens->decode(tokens->encode(text, special::allowed)) == text);
  }
}

TEST_CASE("SentencePiece: sources that make no sense are refused") {
  auto source = small_source();
  source.scores.clear();
  refuses(source, "tokenizer.ggml.scores: is missing");
  source = small_source();
  source.scores[7] = std::numeric_limits<float>::quiet_NaN();
  refuses(source, "tokenizer.ggml.scores: element 7");
  for (const char* text : {"<0x-1>", "<0xag>", "0x0A", "<0x0a>", "<0x0A", "<0x00A>", ""}) {
    CAPTURE(text);
    source = small_source();
    source.tokens[byte_token('\n')] = text;
    refuses(source, "tokenizer.ggml.tokens[13]");
  }
  source = small_source();
  source.tokens.clear();
  source.kinds.clear();
  source.scores.clear();
  refuses(source, "tokenizer.ggml.tokens: is missing");
}
