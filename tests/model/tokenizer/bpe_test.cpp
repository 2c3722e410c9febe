#include "model/tokenizer/bpe.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace lamella;
using model::token_id;

namespace {

std::array<std::optional<token_id>, 256> every_byte() {
  std::array<std::optional<token_id>, 256> tokens;
  for (token_id byte = 0; byte < 256; ++byte) tokens[byte] = byte;
  return tokens;
}

struct rule {
  token_id left, right, merged;
};

/// Merging as it is defined: again and again the first rule that applies, at its leftmost place.
std::vector<token_id> merge_plainly(const std::string& word, const std::vector<rule>& rules) {
  std::vector<token_id> tokens;
  for (const char c : word) tokens.push_back(static_cast<unsigned char>(c));
  for (bool changed = true; changed;) {
    changed = false;
    for (const rule& each : rules) {
      for (size_t i = 0; i + 1 < tokens.size() && !changed; ++i) {
        if (tokens[i] != each.left || tokens[i + 1] != each.right) continue;
        tokens[i] = each.merged;
        tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(i) + 1);
        changed = true;
      }
      if (changed) break;
    }
  }
  return tokens;
}

/// a -> aa -> aaaa -> … up to 2^12 letters in one token.
model::bpe doubling() {
  model::bpe merges(every_byte(), 12);
  token_id last = 'a';
  for (token_id i = 0; i < 12; ++i) {
    merges.add_rule(last, last, 256 + i);
    last = 256 + i;
  }
  return merges;
}

} // namespace

TEST_CASE("merging with a heap equals merging by definition") {
  const uint64_t seed = 3;
  CAPTURE(seed);
  tests::splitmix random(seed);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    std::vector<token_id> pool{'a', 'b', 'c'};
    std::vector<rule> rules;
    std::map<std::pair<token_id, token_id>, bool> seen;
    const uint64_t wanted = 1 + random.below(12);
    model::bpe merges(every_byte(), 12);
    while (rules.size() < wanted) {
      const token_id left = pool[random.below(pool.size())],
                     right = pool[random.below(pool.size())];
      if (!seen.emplace(std::pair{left, right}, true).second) continue;
      rules.push_back({left, right, 256 + static_cast<token_id>(rules.size())});
      pool.push_back(rules.back().merged);
      merges.add_rule(left, right, rules.back().merged);
    }
    model::bpe::scratch room;
    for (int word_number = 0; word_number < 20; ++word_number) {
      std::string word;
      for (uint64_t length = random.below(30); length > 0; --length)
        word += static_cast<char>('a' + random.below(3));
      std::vector<token_id> tokens;
      merges.merge(word, room, tokens);
      CAPTURE(word);
      CHECK(tokens == merge_plainly(word, rules));
    }
  }
}

TEST_CASE("the first of two rules for one pair counts") {
  model::bpe merges(every_byte(), 2);
  merges.add_rule('a', 'b', 300);
  merges.add_rule('a', 'b', 301);
  model::bpe::scratch room;
  std::vector<token_id> tokens;
  merges.merge("ab", room, tokens);
  CHECK(tokens == std::vector<token_id>{300});
}

TEST_CASE("bytes without a token are left out, and their neighbours merge") {
  auto bytes = every_byte();
  bytes[4].reset();
  model::bpe merges(bytes, 1);
  merges.add_rule('a', 'b', 300);
  model::bpe::scratch room;
  std::vector<token_id> tokens;
  merges.merge("a\x04"
               "b\x04",
               room, tokens);
  CHECK(tokens == std::vector<token_id>{300});
  merges.merge("\x04", room, tokens);
  CHECK(tokens.size() == 1);
}

TEST_CASE("a mebibyte of one letter takes work in proportion to its length") {
  const model::bpe merges = doubling();
  model::bpe::scratch room;
  std::vector<token_id> tokens;
  const size_t bytes = 1u << 20;
  const size_t work = merges.merge(std::string(bytes, 'a'), room, tokens);
  CHECK(work <= 4 * bytes);
  CHECK(tokens == std::vector<token_id>(bytes / 4096, 256 + 11));
}

TEST_CASE("long words are cut at the same places always, between code points") {
  const model::bpe merges = doubling();
  model::bpe::scratch room;
  const size_t most = model::bpe::word_bytes_max;
  std::vector<token_id> tokens;
  // One letter over: the last one stands alone although it could merge.
  merges.merge(std::string(most + 1, 'a'), room, tokens);
  CHECK(tokens.size() == most / 4096 + 1);
  CHECK(tokens.back() == 'a');

  // A code point of three bytes across the border is not torn: it still merges into one token.
  model::bpe whole(every_byte(), 2);
  whole.add_rule(0xE4, 0xBD, 300);
  whole.add_rule(300, 0xA0, 301);
  for (const size_t before : {most - 3, most - 2, most - 1, most}) {
    CAPTURE(before);
    tokens.clear();
    whole.merge(std::string(before, 'a') + "\xE4\xBD\xA0" + "aa", room, tokens);
    CHECK(tokens.size() == before + 3);
    CHECK(tokens[before] == 301);
  }

  // Bytes that are no text have no such borders, and are cut all the same.
  tokens.clear();
  merges.merge(std::string(3 * most, '\x80'), room, tokens);
  CHECK(tokens.size() == 3 * most);
}
